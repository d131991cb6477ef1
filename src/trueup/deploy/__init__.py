"""Run a policy on a robot or twin: controller, monitors, preflight, ladder, recording. `tu.deploy(bundle)` runs it."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "verbs", "deploy")
