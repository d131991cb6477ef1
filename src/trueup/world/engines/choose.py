"""Choice of the engine: MuJoCo, or the second one, SAPIEN (PhysX 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.batch import BatchSim
from trueup.world.config import SimCfg
from trueup.world.engines.foot_sensors import add_foot_sensors
from trueup.world.engines.sapien_sim import SapienSim
from trueup.world.engines.simulation import Simulation
from trueup.world.scene.scene import Scene

Engine = Literal["mujoco", "sapien"]
ENGINES: tuple[Engine, ...] = ("mujoco", "sapien")


def make_sim(
    engine: Engine, scene: Scene | Robot, cfg: SimCfg, target_stages: Sequence[TargetStage] = ()
) -> Simulation:
    """A scene in one of the two engines, with feet and trunk watched."""
    scene = Scene.of(scene)
    if engine == "sapien":
        return SapienSim(scene, cfg, target_stages=target_stages)
    if engine == "mujoco":
        return BatchSim(scene, cfg, None, lambda spec: add_foot_sensors(spec, scene.robot), target_stages)
    raise TrueupError(f"no engine {engine!r}: there are {', '.join(ENGINES)}")
