"""Wiggle test: finds swapped joints, wrong signs, dead joints and encoder offsets by moving a robot held in the air."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "wiggle", "wiggle")
