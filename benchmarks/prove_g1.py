"""Is the built-in g1 the robot? A policy that walks on real G1s, in ours and in changed ones: docs/results/prove.md.

    python benchmarks/prove_g1.py --policy FOLDER [--ours RUN]

FOLDER holds `policy.onnx` and `deploy.yaml` (unitree_rl_lab's layout) of a G1 with 29 joints. RUN is a training of
`g1-velocity`, measured beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import process_time

import numpy as np
import tyro
from numpy.typing import NDArray
from parts import PROVE, Numbers, table

from trueup.core.arrays import FloatArray
from trueup.policy.foreign.layout import Layout, read_layout
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.goals.velocity import VelocityGoal
from trueup.tasks.load import load_task
from trueup.tasks.task import Start, Task
from trueup.train.play.assess import ASSESS_SEED, Assessment, assess
from trueup.train.play.witness import open_witness
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.batch import BatchSim, SimCfg

EPISODES = 100
HEAD = ("robot", "falls of 100", "error m/s", "turn rad/s", "power W")
Change = Callable[[TaskEnv], None]


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """Where the policy of others is, a training of ours, and whether to measure again."""

    policy: Path
    ours: Path | None = None
    threads: int = 0
    fresh: bool = False


class Late(TargetStage):
    """Commands arrive whole control steps late: longer than a simulation's own delay line reaches."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._past: list[FloatArray] = []

    def __call__(self, targets: FloatArray, sim: BatchSim) -> FloatArray:
        if not self._past:
            self._past = [targets.copy() for _ in range(self._steps)]
        self._past.append(targets.copy())
        return self._past.pop(0)

    def reset(self, sim: BatchSim, ids: NDArray[np.intp] | None) -> None:
        rows = slice(None) if ids is None else ids
        for past in self._past:
            past[rows] = sim.joint_pos[rows]


def late(ms: int) -> Task:
    return replace(_task(), target_stages=(Late(ms // 20),))


def dry(share: float) -> Change:
    """Dry friction of every joint is this share of its torque limit."""
    return lambda env: env.sim.params.set("friction", share * env.robot.spec.torque_limit)


def as_trained(env: TaskEnv) -> None:
    """The joints of the policy's own training: armature 0.01, no friction."""
    for name, value in (("armature", 0.01), ("friction", 0.0), ("damping", 0.0)):
        env.sim.params.set(name, value)


def soft(share: float) -> Change:
    return lambda env: env.sim.params.set("kp", share * env.robot.spec.kp)


def slippery(env: TaskEnv) -> None:
    env.sim.params.set("contact_friction", 0.3)


def _as_it_is(env: TaskEnv) -> None:
    """Change nothing."""


def _task() -> Task:
    return load_task("g1-velocity")


def steady() -> Task:
    """Straight ahead at 0.5 m/s throughout, from the default pose."""
    task = _task()
    assert isinstance(task.goal, VelocityGoal)
    ahead = replace(task.goal, forward=(0.5, 0.5), sideways=(0.0, 0.0), turn=(0.0, 0.0), standing=0.0)
    return replace(task, goal=ahead, start=Start(any_yaw=True))


CASES: dict[str, tuple[Callable[[], Task], Change]] = {
    "as it is": (_task, _as_it_is),
    "joints as in the policy's training": (_task, as_trained),
    **{f"commands {ms} ms late": (lambda ms=ms: late(ms), _as_it_is) for ms in (20, 40, 60, 80)},
    **{f"dry friction {100 * s:g} % of the limit": (_task, dry(s)) for s in (0.05, 0.10, 0.15, 0.20)},
    **{f"kp x {share:g}": (_task, soft(share)) for share in (0.8, 0.6, 0.4)},
    "ground friction 0.3": (_task, slippery),
    "20 ms late and dry friction 5 %": (lambda: late(20), dry(0.05)),
    **{f"steady 0.5 m/s, dry friction {100 * s:g} %": (steady, dry(s)) for s in (0.0, 0.10, 0.15, 0.20)},
}


def main(cfg: BenchCfg) -> None:
    layout = read_layout(cfg.policy / "deploy.yaml", joint_names=load_robot("g1").spec.joint_names)
    found = PROVE.each("g1", list(CASES), lambda key: _foreign(cfg, layout, *CASES[key]), fresh=cfg.fresh)
    rows = [(key, *_cells(numbers)) for key, numbers in found.items()]
    nominal = found["as it is"]
    numbers: Numbers = {
        "g1_falls": nominal["falls"],
        "g1_error": nominal["error"],
        "g1_turn_error": nominal["turn_error"],
        "g1_power_w": nominal["power_w"],
        "g1_first_falls_delay_ms": _first(found, "commands {} ms late", (20, 40, 60, 80)),
        "g1_first_falls_friction_percent": _first(found, "dry friction {} % of the limit", (5, 10, 15, 20)),
        "g1_first_falls_friction_percent_steady": _first(found, "steady 0.5 m/s, dry friction {} %", (10, 15, 20)),
        "g1_steps_per_cpu_second": round(_speed()),
    }
    text = f"""## A policy of others in our g1

`{layout.name}` (unitree_rl_lab, trained in Isaac Lab on a GPU, run on real G1s) at its own gains, rate and
observations, read from its own `deploy.yaml`: {EPISODES} episodes of 20 s, flat ground, commands over its own ranges
({_ranges(layout)}), sensor noise on, no pushes. The robot is
the zoo's (`SOURCES.md` there), as it is and changed; no number of it was fitted to this policy.

{table(HEAD, rows)}

Steady: 0.5 m/s straight ahead from the default pose throughout; all others change what they ask for every 4 to 8 s.
The robot alone, standing and falling with its servos on, makes {numbers["g1_steps_per_cpu_second"]:,} control steps
per CPU-second of one core (128 at once, 200 Hz physics).
{_beside(cfg, numbers)}"""
    arguments = [
        "FOLDER" if before in ("--policy", "--ours") else argument
        for before, argument in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False)
    ]
    PROVE.merge("g1", numbers, text, " ".join(["python", "benchmarks/prove_g1.py", *arguments]))


def _foreign(cfg: BenchCfg, layout: Layout, task: Callable[[], Task], change: Change) -> Numbers:
    env_cfg = EnvCfg(nenv=EPISODES, threads=cfg.threads, seed=ASSESS_SEED, randomize=False, pushes=False, stagger=False)
    env, policy = open_witness(cfg.policy / "policy.onnx", layout, _in_its_range(task(), layout), env_cfg)
    change(env)
    return _numbers(assess(env, policy, env.task.score, env.task.rates.episode_s))


def _in_its_range(task: Task, layout: Layout) -> Task:
    """The task with the commands that the layout says the policy was trained with, unless it asks for one only."""
    assert isinstance(task.goal, VelocityGoal)
    if task.goal.forward[0] == task.goal.forward[1]:
        return task
    forward, sideways, turn = next(term.clip for term in layout.observation.terms if term.signal == "command")
    return replace(task, goal=replace(task.goal, forward=forward, sideways=sideways, turn=turn))


def _beside(cfg: BenchCfg, numbers: Numbers) -> str:
    """A training of ours in the task's own range, if one was given."""
    if cfg.ours is None:
        return ""
    from trueup.train.folder import RunFolder
    from trueup.train.train import assess_run

    run = RunFolder(cfg.ours)
    last = run.read_metrics()[-1]
    ours = _numbers(assess_run(run, episodes=EPISODES))
    numbers.update({"g1_ours_falls": ours["falls"], "g1_ours_error": ours["error"]})
    return f"""
### g1-velocity of ours

After {last["minutes"]:.0f} minutes and {last["steps"] / 1e6:.1f} M steps, over the task's whole range of commands:

{table(HEAD, [("as it is", *_cells(ours))])}
"""


def _numbers(result: Assessment) -> Numbers:
    keep = ("falls", "error", "turn_error", "power_w", "rest_speed")
    flags = {name: value for name, value in result.metrics.items() if name.startswith("flag/")}
    return {key: value for key, value in asdict(result).items() if key in keep} | flags


def _cells(numbers: Numbers) -> tuple[object, ...]:
    return (
        numbers["falls"],
        f"{numbers['error']:.3f}",
        f"{numbers['turn_error']:.3f}",
        f"{numbers['power_w']:.0f}",
    )


def _first(found: dict[str, Numbers], name: str, sizes: tuple[int, ...]) -> int | None:
    """The smallest change at which any of the episodes falls; None: at none."""
    return next((size for size in sizes if found[name.format(size)]["falls"]), None)


def _ranges(layout: Layout) -> str:
    clip = next(term.clip for term in layout.observation.terms if term.signal == "command")
    units = ("m/s forward", "m/s sideways", "rad/s")
    return ", ".join(f"{low:g} to {high:g} {unit}" for (low, high), unit in zip(clip, units, strict=True))


def _speed() -> float:
    sim = BatchSim(load_robot("g1"), SimCfg(nsim=128, threads=1))
    pose = sim.robot.spec.default_pose
    for _ in range(20):
        sim.step(pose)
    started = process_time()
    for _ in range(100):
        sim.step(pose)
    return 128 * 100 / (process_time() - started)


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
