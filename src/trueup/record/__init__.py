"""Record: excite a robot, or its twin, and keep what it did. `tu.record(...)` runs it."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "session", "record")
