"""Ground of a scenario: a kind of terrain at one size, or a carpet whose friction depends on the direction."""

from __future__ import annotations

import math
from collections.abc import Callable

import mujoco

from trueup.evaluate.scenarios.scenario import Carpet, Scenario
from trueup.robot.model import FLOOR
from trueup.robot.spec import RobotSpec
from trueup.world.course import COURSES, Course
from trueup.world.terrain import Terrain, TerrainCfg, difficulty_of

_AHEAD = 1.4  # times the way that is asked, to the edge of the ground


def terrain_of(scenario: Scenario, way_m: float, seed: int) -> Terrain | None:
    """Ground that ends where `way_m` from its start does not reach; None on flat ground."""
    if scenario.terrain is None or scenario.terrain.kind == "flat":
        return None
    kind, size, far_m = scenario.terrain.kind, scenario.terrain.size, math.ceil(max(3.0, _AHEAD * way_m))
    if kind in COURSES:
        return Course(kind, size, far_m, seed)
    return Terrain(TerrainCfg(kinds=(kind,), levels=1, patch_m=2.0 * far_m, hardest=difficulty_of(kind, size)), seed)


def carpet_maker(carpet: Carpet, robot: RobotSpec) -> Callable[[mujoco.MjSpec], None]:
    """Adds explicit contacts of robot and floor, the only ones of the engine with two coefficients.

    The contact frame of a horizontal plane has world y as its first tangent and x as its second (`mju_makeFrame`).
    """

    def prepare(spec: mujoco.MjSpec) -> None:
        for geom in robot.contact_geoms or robot.feet:
            friction = [carpet.across, carpet.along, 0.005, 1e-4, 1e-4]
            spec.add_pair(geomname1=FLOOR, geomname2=geom, condim=3, friction=friction)

    return prepare
