"""May a policy run on the robot? The gate and a prediction of what the robot will show; `tu.verify(bundle)` runs it."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "verbs", "verify")
