"""What this computer can do: checks with advice, and how fast it steps and draws. `tu.doctor()` runs them."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "checks", "diagnose")
