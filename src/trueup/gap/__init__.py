"""Where simulator and robot differ, why, and what to fit next: windows, causes, decision. `tu.gap(...)` runs it."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "gap", "gap")
