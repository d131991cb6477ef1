"""Delta action (ASAP): the correction of a policy's targets that aligns a simulator with what a robot did."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "delta", "calibrate_delta")
