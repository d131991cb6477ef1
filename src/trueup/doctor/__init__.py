"""Checks of this computer with advice, and its speed of simulation and drawing. `tu.doctor()` runs them."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "checks", "diagnose")
