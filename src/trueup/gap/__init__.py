"""Diagnosis of the sim-to-real gap: windows, ranked causes, and the parameters to fit next. `tu.gap(...)` runs it."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "gap", "gap")
