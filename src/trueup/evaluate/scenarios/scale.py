"""Scenarios for a robot of another size: loads and forces go with its mass, lengths with its legs (`tasks.similar`).

Ground is made smaller for smaller robots, never larger: stairs are what they are.
"""

from __future__ import annotations

import msgspec

from trueup.evaluate.scenarios.scenario import ParameterChange, Probe, Scenario, TerrainSize
from trueup.evaluate.scenarios.suite import Suite
from trueup.robot.load import load_robot
from trueup.tasks.similar.figures import measure
from trueup.tasks.similar.laws import FORCE, LENGTH, PARAMETERS, RATE, SPEED, Laws, rounded

_SLOPES = ("slope_up", "slope_down")
_COLUMNS = {"forward": SPEED, "sideways": SPEED, "turn": RATE}


def scaled_suite(suite: Suite, robot: str) -> Suite:
    """The suite for a robot, whose name or folder is given."""
    if suite.reference is None or suite.reference == robot:
        return suite
    return scaled(suite, Laws(measure(load_robot(suite.reference)), measure(load_robot(robot)), suite.speeds))


def scaled(suite: Suite, laws: Laws) -> Suite:
    """The suite with every number that has a unit of its own scaled."""
    return msgspec.structs.replace(
        suite,
        vary={name: _change(name, one, laws) for name, one in suite.vary.items()},
        scenarios=tuple(_scenario(one, laws) for one in suite.scenarios),
        probes=tuple(_probe(one, laws) for one in suite.probes),
    )


def _scenario(one: Scenario, laws: Laws) -> Scenario:
    command = one.command and {name: rounded(laws.asked(_COLUMNS[name]) * v) for name, v in one.command.items()}
    push = one.push and msgspec.structs.replace(one.push, newton=rounded(laws.ratio(FORCE) * one.push.newton))
    return msgspec.structs.replace(
        one,
        command=command,
        push=push,
        terrain=one.terrain and _terrain(one.terrain, laws),
        params={name: _change(name, change, laws) for name, change in one.params.items()},
    )


def _terrain(one: TerrainSize, laws: Laws) -> TerrainSize:
    if one.kind in _SLOPES:
        return one
    return msgspec.structs.replace(one, size=rounded(min(1.0, laws.ratio(LENGTH)) * one.size))


def _change(name: str, one: ParameterChange, laws: Laws) -> ParameterChange:
    if one.operation == "scale" or name not in PARAMETERS:
        return one
    low, high = (rounded(laws.ratio(PARAMETERS[name]) * number) for number in one.bounds)
    return msgspec.structs.replace(one, **{one.operation: (low, high)})


def _probe(one: Probe, laws: Laws) -> Probe:
    if one.operation == "scale" or one.param not in PARAMETERS:
        return one
    levels = tuple(rounded(laws.ratio(PARAMETERS[one.param]) * number) for number in one.levels)
    return msgspec.structs.replace(one, **{one.operation: levels})
