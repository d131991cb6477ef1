"""The world of a scenario's trials: one batch, a row each, that begins, is disturbed and can be watched.

`make_world` is the one place that knows engines. Numbers are drawn on a MuJoCo batch whatever the engine, and carried
over by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.rows import RowRandom
from trueup.evaluate.scenarios.scenario import ParameterChange, Scenario
from trueup.evaluate.trials.changes import Changer, masses
from trueup.evaluate.trials.disturb import Heater, Shover, Steerer
from trueup.evaluate.trials.ground import carpet_maker, terrain_of
from trueup.policy.action import JointOrder
from trueup.policy.mlp import PolicySpec
from trueup.policy.observation import OWN_SIGNALS
from trueup.robot.load import load_robot
from trueup.tasks.build import Changed, EnvCfg, Parts, build, sensing
from trueup.tasks.evaluation.worlds import SimWorld
from trueup.tasks.goals.goal import Goal
from trueup.tasks.task import Servo, Start, Task
from trueup.tasks.terrain import Climb
from trueup.tasks.variation import Starts
from trueup.world.fitted.calibration import SimParams

EngineName = Literal["mujoco", "sapien"]
MAX_DELAY_S = 0.12


@dataclass(frozen=True, kw_only=True)
class TrialCfg:
    """How many trials, from which seed, in which engine.

    fit        a calibration: what it fitted is drawn from its posterior in each trial
    vary       what else differs from trial to trial
    first_row  row 0 is trial `first_row` of the seed: a trial is the same alone and among others
    moved      parameters changed at the end by a number of each trial (trials, 1); NaN: left as it is
    worlds     different robots: trial k is of robot k modulo `worlds`, with a start and commands of its own; None: all
    """

    trials: int = 100
    seed: int = 0
    engine: EngineName = "mujoco"
    threads: int = 0
    fit: SimParams | None = None
    vary: Mapping[str, ParameterChange] | None = None
    first_row: int = 0
    moved: tuple[tuple[str, ParameterChange, FloatArray], ...] = ()
    worlds: int | None = None


class TrialWorld(SimWorld):
    """Trials of one scenario, at their start.

    goal, command  what is asked: the running goal, and values that are held (nrow, ncommand) or None
    mass           of the robot in each row, kg
    target         (nrow, njoint) of the last control step
    not_honoured   parameters that this engine does not have
    """

    def __init__(self, parts: Parts, start: Start, scenario: Scenario, spec: PolicySpec, mass: FloatArray) -> None:
        self.sim, self.goal, self.mass, self.scenario = parts.sim, parts.goal, mass, scenario
        self.not_honoured: tuple[str, ...] = ()
        self._start_cfg, self._ground = start, parts.sense.ground
        others = [term.signal for term in spec.observation.terms if term.signal not in OWN_SIGNALS]
        super().__init__(parts.sim, parts.sense, [name for name in others if name in parts.sense.signals])
        self.target: FloatArray = np.zeros((self.nrow, self.robot.njoint))
        self.command = _held(scenario, parts.goal, self.nrow)
        self._shover = Shover(scenario.push, self.sim) if scenario.push is not None else None
        self._heater = Heater(scenario.heat, self.sim) if scenario.heat is not None else None
        self._steerer = Steerer(parts.goal, self.sim) if scenario.heading and parts.goal.sliders else None

    def reset(self) -> None:
        """Draw what is asked, and put robots into their start states, feet on the ground."""
        sim, rows = self.sim, np.arange(self.nrow)
        qpos, qvel = self._drawn_start(rows)
        self.goal.reset(rows)
        self.goal.adjust_start(rows, qpos, qvel)
        sim.reset(qpos=qpos, qvel=qvel)
        self.frame.forget()
        if sim.free_base and len(sim.robot.spec.feet):
            qpos[:, sim.base_qpos + 2] -= self.frame.foot_height.min(axis=1)
            sim.reset(qpos=qpos, qvel=qvel)
            self.frame.forget()
        self._sense.reset(rows, self.frame.command)

    def step(self, targets: NDArray[np.floating]) -> None:
        self.target = np.asarray(targets, np.float64)
        if self._shover is not None:
            self._shover.advance()
        super().step(targets)
        if self._heater is not None:
            self._heater.advance()
        if self._steerer is not None:
            self._steerer.advance()

    @property
    def torque_limit(self) -> FloatArray:
        """Now, (nrow, njoint)."""
        return self.sim.params.get("torque_limit")

    @property
    def diverged(self) -> NDArray[np.bool_]:
        return self.sim.diverged

    def base(self) -> FloatArray | None:
        """Pose of a free base, (nrow, 7)."""
        return self.sim.motion.of(None).base_pose

    def _drawn_start(self, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        seed, first = self.sim.cfg.seed, self.sim.cfg.first_row
        starts = Starts(self._start_cfg, self.sim, RowRandom(seed, "start", self.nrow, first))
        terrain = self._ground.terrain
        climb = None
        if terrain is not None:
            climb = Climb(terrain, self.nrow, RowRandom(seed, "climb", self.nrow, first), first, 0)
        return starts.draw(rows, climb)


def make_world(task: Task, scenario: Scenario, spec: PolicySpec, cfg: TrialCfg) -> TrialWorld:
    """The trials of a scenario for a policy: the task's robot and sensors, the policy's gains and rate."""
    if cfg.engine not in ("mujoco", "sapien"):
        raise TrueupError(f"no engine {cfg.engine!r}{did_you_mean(cfg.engine, ('mujoco', 'sapien'))}")
    scenario_task = for_scenario(task, scenario, spec)
    prepare = None if scenario.carpet is None else carpet_maker(scenario.carpet, load_robot(task.robot).spec)
    env = EnvCfg(
        nenv=cfg.trials, threads=cfg.threads, seed=cfg.seed, first_row=cfg.first_row, randomize=False, pushes=False
    )
    speed = math.hypot(*((scenario.command or {}).get(name, 0.0) for name in ("forward", "sideways")))
    terrain = terrain_of(scenario, speed * scenario.seconds, cfg.seed)
    parts = build(scenario_task, env, cfg.fit, Changed(max_delay_s=MAX_DELAY_S, terrain=terrain, prepare=prepare))
    changer = Changer(parts.sim)
    if cfg.fit is not None:
        changer.from_posterior(cfg.fit)
    changer.vary(cfg.vary or {})
    changer.apply(scenario.params)
    for name, change, numbers in cfg.moved:
        changer.move(name, change, numbers)
    if cfg.worlds is not None:
        changer.repeat(cfg.worlds)
    mass = masses(parts.sim)
    left: tuple[str, ...] = ()
    if cfg.engine == "sapien":
        parts, left = _in_sapien(scenario_task, parts, env, changer.touched)
        left = left if scenario.carpet is None else (*left, "carpet")
    world = TrialWorld(parts, scenario_task.start, scenario, spec, mass)
    world.not_honoured = left
    return world


def for_scenario(task: Task, scenario: Scenario, spec: PolicySpec) -> Task:
    """The task with a policy's gains and rate, and a scenario's ground and start."""
    names = load_robot(task.robot).spec.joint_names
    order = JointOrder(spec.observation.joint_names, names)
    kp, kd = (tuple(order.to_robot(np.array(gains)).tolist()) for gains in (spec.kp, spec.kd))
    substeps = max(1, math.ceil(task.rates.physics_hz / spec.control_hz - 1e-9))
    noise = {name: getattr(scenario.start, name) for name in scenario.start.__struct_fields__}
    return replace(
        task,
        rates=replace(task.rates, control_hz=spec.control_hz, physics_hz=substeps * spec.control_hz),
        servo=Servo(kp=kp, kd=kd, torque=task.servo.torque),
        symmetric=False,
        terrain=None,
        start=Start(**noise),
    )


def _held(scenario: Scenario, goal: Goal, nrow: int) -> FloatArray | None:
    """What is asked throughout, inside the task's own range; None: as the goal draws it."""
    if scenario.command is None:
        return None
    columns = [slider.name.partition(",")[0] for slider in goal.sliders]
    odd = [name for name in scenario.command if name not in columns]
    if odd:
        hint = did_you_mean(odd[0], columns) if columns else ": this task's goal cannot be held"
        raise TrueupError(f"scenario {scenario.name!r}: no command {odd[0]!r}{hint}")
    values = [
        min(max(scenario.command.get(name, 0.0), slider.low), slider.high)
        for name, slider in zip(columns, goal.sliders, strict=True)
    ]
    return np.tile(np.array(values), (nrow, 1))


def _in_sapien(task: Task, drawn: Parts, env: EnvCfg, touched: list[str]) -> tuple[Parts, tuple[str, ...]]:
    """The same trials in the second engine, and the parameters that it cannot honour."""
    from trueup.world.engines.sapien_sim import SapienSim  # brings PhysX

    first = drawn.sim
    sim = SapienSim(first.scene, first.cfg, target_stages=task.target_stages)
    left = []
    for name in dict.fromkeys(touched):
        try:
            sim.params.set(name, first.params.get(name))
        except TrueupError:
            left.append(name)
    sim.sensors.noise_scale = first.sensors.noise_scale
    _, _, goal, sense = sensing(task, env, sim)
    return drawn._replace(sim=sim, goal=goal, sense=sense), tuple(left)  # type: ignore[arg-type]
