"""The whole loop in a workspace of artifacts: stages, rounds and their comparison. `tu.loop(...)` runs it."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "show", "loop")
