"""From a log to a simulator that fits: parameters, residuals, fit, uncertainty, result. `tu.calibrate(...)` runs it.

`tu.calibrate.actuator(...)` compares actuator models, `tu.calibrate.delta(...)` fits a delta action,
`tu.calibrate.load(...)` weighs what a legged robot carries.
"""

from importlib import import_module

from trueup.core.verb_package import make_callable

make_callable(__name__, "calibrate", "calibrate")


def __getattr__(name: str) -> object:
    if name in ("actuator", "delta"):
        return import_module(f"{__name__}.{name}")
    if name == "load":
        return import_module(f"{__name__}.weighing").load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
