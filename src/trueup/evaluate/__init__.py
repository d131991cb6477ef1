"""Policies in scenarios: trials, statistics, sensitivity, red flags, films and logs. `tu.evaluate(...)` runs it."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "run", "evaluate")
