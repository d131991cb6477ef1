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
        vary={name: _change(name, change, laws) for name, change in suite.vary.items()},
        scenarios=tuple(_scenario(scenario, laws) for scenario in suite.scenarios),
        probes=tuple(_probe(probe, laws) for probe in suite.probes),
    )


def _scenario(scenario: Scenario, laws: Laws) -> Scenario:
    command = scenario.command and {
        name: rounded(laws.asked(_COLUMNS[name]) * v) for name, v in scenario.command.items()
    }
    push = scenario.push and msgspec.structs.replace(
        scenario.push, newton=rounded(laws.ratio(FORCE) * scenario.push.newton)
    )
    return msgspec.structs.replace(
        scenario,
        command=command,
        push=push,
        terrain=scenario.terrain and _terrain(scenario.terrain, laws),
        params={name: _change(name, change, laws) for name, change in scenario.params.items()},
    )


def _terrain(terrain: TerrainSize, laws: Laws) -> TerrainSize:
    if terrain.kind in _SLOPES:
        return terrain
    return msgspec.structs.replace(terrain, size=rounded(min(1.0, laws.ratio(LENGTH)) * terrain.size))


def _change(name: str, change: ParameterChange, laws: Laws) -> ParameterChange:
    if change.operation == "scale" or name not in PARAMETERS:
        return change
    low, high = (rounded(laws.ratio(PARAMETERS[name]) * number) for number in change.bounds)
    return msgspec.structs.replace(change, **{change.operation: (low, high)})


def _probe(probe: Probe, laws: Laws) -> Probe:
    if probe.operation == "scale" or probe.param not in PARAMETERS:
        return probe
    levels = tuple(rounded(laws.ratio(PARAMETERS[probe.param]) * number) for number in probe.levels)
    return msgspec.structs.replace(probe, **{probe.operation: levels})
