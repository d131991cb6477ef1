"""A task's world in the engine of choice: rows of simulations, its goal, and the starts of its episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.policy.action import ActionSpec
from trueup.policy.observation import ObservationSpec
from trueup.tasks.build import EnvCfg, sensing, sim_setup
from trueup.tasks.evaluation.worlds import SimWorld
from trueup.tasks.goals.goal import Goal
from trueup.tasks.sensing.frame import Sense
from trueup.tasks.task import Task
from trueup.tasks.terrain import Climb
from trueup.tasks.variation import Starts
from trueup.world.engines.choose import Engine, make_sim
from trueup.world.engines.simulation import Simulation


@dataclass(frozen=True, kw_only=True)
class OpenWorld:
    """One world with what the evaluation loop needs, and its handles for parameters and pushes."""

    world: SimWorld
    sim: Simulation
    goal: Goal
    sense: Sense
    observation: ObservationSpec
    action: ActionSpec

    def begin(self, task: Task, env: EnvCfg) -> None:
        """Start an episode in every row from the task's start states: poses about the default one, drawn by row.

        On a terrain rows stand on its kinds in turn, at the level of `env`.
        """
        rows, climb, terrain = np.arange(self.sim.nsim), None, self.sim.scene.terrain
        start, place = (RowRandom(env.seed, stream, env.nenv, env.first_row) for stream in ("start", "climb"))
        if terrain is not None:
            climb = Climb(terrain, env.nenv, place, env.first_row, env.level)
        qpos, qvel = Starts(task.start, self.sim, start).draw(rows, climb)
        self.goal.reset(rows)
        self.goal.adjust_start(rows, qpos, qvel)
        self.sim.reset(qpos=qpos, qvel=qvel)
        self.sense.reset(rows, self.world.frame.command)


def open_world(task: Task, env: EnvCfg, engine: Engine = "mujoco") -> OpenWorld:
    """The world of a task, nominal: ranges, pushes and curricula are the environment's (`tasks.env`)."""
    if env.actuator is not None and engine != "mujoco":
        raise TrueupError("a learned actuator runs in MuJoCo only: the second engine has the nominal servo")
    scene, cfg = sim_setup(task, env)
    sim = make_sim(engine, scene, cfg, task.target_stages)
    observation, action, goal, sense = sensing(task, env, sim)
    world = SimWorld(sim, sense, observation.others)
    return OpenWorld(world=world, sim=sim, goal=goal, sense=sense, observation=observation, action=action)
