"""The actuator ladder: rungs from ideal PD to learned actuators, one held-out score, one recommendation.

`tu.calibrate.actuator(...)` runs it.
"""

from trueup.core.verb_package import make_callable

make_callable(__name__, "ladder", "run_ladder")
