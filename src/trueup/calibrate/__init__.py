"""From a log to a simulator that fits: parameters, residuals, fit, uncertainty, result. `tu.calibrate(...)` runs it."""

from trueup.core.verb_package import make_callable

make_callable(__name__)
