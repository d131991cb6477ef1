"""Humanoid motions: followed, walked, of others, retargeted and checked; sections of docs/results/humanoid.md.

    python benchmarks/humanoid_track.py tracking --runs FOLDER [--motions squat:1200000 squat+kick:2000000]
    python benchmarks/humanoid_track.py walking --runs FOLDER [--policies FOLDER]
    python benchmarks/humanoid_track.py witnesses --policies FOLDER
    python benchmarks/humanoid_track.py retarget
    python benchmarks/humanoid_track.py checked [--policies FOLDER]

Trainings are kept in FOLDER and not repeated; with more steps and --fresh they go on. Time is processor time of one
core, all of a training included. Policies: a folder with `g1_dance_102` (rl_sar's layout and the CSV of its motion) and
`g1_velocity` (unitree_rl_lab's).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from time import process_time
from typing import Literal

import numpy as np
import tyro
from parts import HUMANOID, Numbers, table
from people import enlarged, lifting, stepping
from spoilt_motions import CASES

from trueup.core.arrays import Ids
from trueup.motion.check import check_motion
from trueup.motion.made.make import make_motion
from trueup.motion.mend import mend_motion
from trueup.motion.motion import write_motion
from trueup.motion.readers.open import open_motion
from trueup.motion.retarget.points import KeyPoints, key_points
from trueup.motion.retarget.retarget import Quality, RetargetCfg, Retargeted, retarget
from trueup.policy.foreign.layout import read_layout
from trueup.policy.normalizer import Float32
from trueup.policy.runner import Policy, PolicyRunner
from trueup.rl.env import Obs
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.goals.velocity import VelocityGoal
from trueup.tasks.load import load_task
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.task import Start, Task
from trueup.tasks.terms.tracking import body_error, global_error, near_error
from trueup.tasks.zoo.g1_track import tracking_ranges
from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.folder import RunFolder
from trueup.train.play.assess import ASSESS_SEED, assess
from trueup.train.play.witness import open_witness
from trueup.train.train import train
from trueup.world.randomization.randomize import Ranges, locomotion_ranges
from trueup.world.sensors import SensorCfg

TRIALS = 100
_NEAR_M = 0.25  # mean distance from a reference that stands where the robot does: a robot that has not fallen
_LOOKS = 8
TARGETS = {"walk": (0.90, 45.0, 45.0), "trot": (0.95, 30.0, 10.0)}  # success, mm, minutes; the others:
TARGET = (0.95, 30.0, 10.0)
AS_FAR_AS_THEY_GO = ("kick", "jump")
_DANCE = "G1_Take_102.bvh_60hz.csv"


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """`motions` as NAME:STEPS or NAME+NAME:STEPS (a set); `steps` of the walking task (0: others' alone)."""

    part: tyro.conf.Positional[Literal["tracking", "walking", "witnesses", "retarget", "checked"]]
    runs: Path = Path("runs/humanoid")
    policies: Path | None = None
    motions: tuple[str, ...] = (
        "squat:1200000",
        "arm_raise:1200000",
        "side_step:1200000",
        "walk:7500000",
        "trot:800000",
        "kick:1500000",
        "jump:1500000",
    )
    seeds: tuple[int, ...] = (0,)
    steps: int = 2_500_000
    threads: int = 1
    fresh: bool = False


def main(cfg: BenchCfg) -> None:
    numbers, text = {
        "tracking": tracking,
        "walking": walking,
        "witnesses": witnesses,
        "retarget": retargeted,
        "checked": checked,
    }[cfg.part](cfg)
    hidden = {"--runs", "--policies"}
    words = [
        "FOLDER" if before in hidden else word for before, word in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False)
    ]
    HUMANOID.merge(cfg.part, numbers, text, " ".join(["python", "benchmarks/humanoid_track.py", *words]))


# --- following a motion ---
def tracking(cfg: BenchCfg) -> tuple[Numbers, str]:
    steps = dict(name.split(":") for name in cfg.motions)
    for seed in cfg.seeds:
        keys = [f"{motion}/{seed}" for motion in steps]
        HUMANOID.each(
            "tracking", keys, lambda key: _learned(cfg, key, int(steps[key.partition("/")[0]])), fresh=cfg.fresh
        )
    by_motion: dict[str, list[Numbers]] = {}
    for key, run in HUMANOID.load()["runs"]["tracking"].items():  # of earlier calls too
        by_motion.setdefault(key.partition("/")[0], []).append(run)
    rows, numbers = [], {}
    for motion, runs in by_motion.items():
        success, most_mm, minutes = TARGETS.get(motion, TARGET)
        reached = [_reached(run, success, most_mm) for run in runs]
        worst = None if None in reached else max(reached)
        spread = {name: [run[name] for run in runs] for name in ("success", "mm", "global_mm", "minutes")}
        numbers |= {f"success_{motion}": median(spread["success"]), f"mm_{motion}": median(spread["mm"])}
        numbers |= {f"minutes_{motion}": None if worst is None else median(reached)}
        asked = f"{100 * success:.0f} %, {most_mm:.0f} mm, {minutes:.0f} min"
        if motion in AS_FAR_AS_THEY_GO:
            asked = f"as far as it goes; reached: {100 * success:.0f} %, {most_mm:.0f} mm"
        rows.append((
            motion.replace("_", " ").replace("+", ", "), runs[0]["task"], len(runs), f"{runs[0]['steps'] / 1e6:.2f} M",
            _median_worst(spread["minutes"], 1.0, ".1f", max), asked,
            _median_worst(spread["success"], 100.0, ".0f", min), _drifted(runs),
            _median_worst(spread["mm"], 1.0, ".1f", max), _median_worst(spread["global_mm"], 1.0, ".0f", max),
            _cell(runs[0].get("nominal")), f"{100 * runs[0]['open_loop']['success']:.0f} %",
            "not reached" if worst is None else _median_worst(reached, 1.0, ".1f", max),
        ))  # fmt: skip
    head = ("motion", "task", "seeds", "steps", "minutes in all", "asked", "to the end %", "drifted %", "E_mpjpe mm",
            "E_g-mpjpe mm", "nominal robot", "open loop, to the end", "first reached, min")  # fmt: skip
    text = f"""## Following motions

Motions of trueup's own making, learned from scratch by PPO with the settings of the task (256 copies, targets = those
that hold the reference by inverse dynamics + residual). Minutes are processor time of **one** core for everything
(simulation, learning, start-up); two cores that are idle otherwise take less. Judged on {TRIALS} trials from the first
row to the last, on other random numbers, without exploration, with sensor noise, command delay (0 to 20 ms), gains,
masses, payload, ground and dry friction and encoder offsets drawn from the task's whole ranges (`tracking_ranges`;
what a policy that runs on real robots does in them is in the section on the dance). A trial fails when the mean
distance of the bodies from the reference exceeds 0.5 m in the world; "drifted" failed so without having fallen (less
than 0.25 m from a reference that stands where the robot does): no sensor tells the policy where it is. Errors are
means over the steps of trials that had not failed, relative to the root (E_mpjpe) and in the world (E_g-mpjpe). Where
there are several seeds, the median, and behind a stroke the worst. Several motions in one row are a set: one policy.
Nominal robot: the same policy with sensor noise alone, success and E_mpjpe. Open loop: the holding
targets alone, without residuals. "First reached" is the first of {_LOOKS} snapshots that did all that is asked.

{table(head, rows)}
"""
    return numbers, text


def _reached(run: Numbers, success: float, most_mm: float) -> float | None:
    """Minutes until the first snapshot that did what is asked."""
    return next((p["minutes"] for p in run["curve"] if p["success"] >= success and p["mm"] < most_mm), None)


def _drifted(runs: list[Numbers]) -> str:
    """Share of trials that failed by drift, where it was measured."""
    found = [100 * run["drifted"] for run in runs if "drifted" in run]
    return f"{median(found):.0f}" if found else ""


def _median_worst(values: list[float], scale: float, form: str, worst: Callable[[list[float]], float]) -> str:
    """The median, and of several the worst."""
    middle = f"{scale * median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} / {scale * worst(values):{form}}"


def _cell(run: Numbers | None) -> str:
    return "" if run is None else f"{100 * run['success']:.0f} %, {run['mm']:.1f} mm"


def _learned(cfg: BenchCfg, key: str, steps: int) -> Numbers:
    motion, _, seed = key.partition("/")
    name = ("go2-track:" if motion in ("trot", "pace") else "g1-track:") + motion.replace("+", ",")
    path = cfg.runs / key.replace("/", "-")
    run = RunCfg(task=name, threads=cfg.threads, seed=int(seed), learner=default_learner(name))
    folder, minutes = RunFolder(path), _trained(run, path, steps)
    made = int(folder.newest().facts["steps"])
    per_iteration = made / int(folder.read_metrics()[-1]["iteration"])
    kept = folder.snapshot_iterations()
    at = {min(kept, key=lambda k: abs(k * per_iteration - part * made / _LOOKS)) for part in range(1, _LOOKS)}
    curve = []
    for iteration in sorted(at):
        policy = PolicyRunner(folder.policy_at(iteration), TRIALS)
        share = iteration * per_iteration / made
        curve.append({"minutes": share * minutes, **_trials(_env(name, cfg), policy)})
    final = _trials(_env(name, cfg), PolicyRunner(folder.newest_policy(), TRIALS))
    curve.append({"minutes": minutes, **final})
    env = _env(name, cfg)
    nominal = _trials(_env(name, cfg, randomize=False), PolicyRunner(folder.newest_policy(), TRIALS))
    return {
        "task": name.partition(":")[0],
        "steps": made,
        "minutes": minutes,
        **final,
        "curve": curve,
        "open_loop": _trials(env, _Nothing(env.naction)),
        "nominal": nominal,
    }


def _trained(run: RunCfg, path: Path, steps: int) -> float:
    """Processor time of a training in minutes; it goes on where a call with fewer steps ended."""
    spent = path / "cpu_seconds.txt"
    seconds = float(spent.read_text()) if spent.exists() else 0.0
    if not spent.exists() or int(RunFolder(path).newest().facts["steps"]) < steps:
        began = process_time()
        train(run, path, Budget(steps=steps, save_s=60.0), resume=spent.exists())
        seconds += process_time() - began
        spent.write_text(f"{seconds:.1f}\n")
    return seconds / 60


class _Nothing:
    """No residual: servos play the reference."""

    def __init__(self, naction: int) -> None:
        self._naction = naction

    def restart(self, rows: Ids) -> None:
        """Nothing to forget."""

    def __call__(self, obs: Obs) -> Float32:
        return np.zeros((len(obs.actor), self._naction), np.float32)


def _env(task: str | Task, cfg: BenchCfg, *, randomize: bool = True) -> TaskEnv:
    env = EnvCfg(
        nenv=TRIALS, threads=cfg.threads, seed=ASSESS_SEED, randomize=randomize, pushes=randomize, stagger=False
    )
    return TaskEnv(load_task(task) if isinstance(task, str) else task, env)


def _trials(env: TaskEnv, policy: Policy) -> Numbers:
    """One episode in every row: how many get to the end, and how near they stay until they fail.

    drifted  share of trials that failed for where they were in the world, not for how they stood or moved
    """
    alive, ended, drifted = np.ones(env.nenv, bool), np.zeros(env.nenv, bool), np.zeros(env.nenv, bool)
    sums, count, near = np.zeros(2), 0, np.zeros(env.nenv)

    def watch(frame: Frame) -> None:
        nonlocal count
        rows = alive & ~ended
        sums[:] += [float(function(frame)[rows].sum()) for function in (body_error, global_error)]
        count += int(rows.sum())
        near[:] = near_error(frame)

    obs, env.watch = env.reset(), watch
    policy.restart(np.arange(env.nenv))
    while not ended.all():
        step = env.step(np.ascontiguousarray(policy(obs), np.float32))
        policy.restart(step.ended)
        failed = step.terminated & ~ended
        drifted |= failed & (near < _NEAR_M)
        alive &= ~failed
        ended |= step.terminated | step.truncated
        obs = step.obs
    env.watch = None
    mm, global_mm = (1e3 * sums / max(count, 1)).tolist()
    return {"success": float(alive.mean()), "drifted": float(drifted.mean()), "mm": mm, "global_mm": global_mm}


# --- walking ---
def walking(cfg: BenchCfg) -> tuple[Numbers, str]:
    if cfg.policies is not None:
        HUMANOID.each("walking", ["g1_velocity"], lambda key: _their_walk(cfg), fresh=cfg.fresh)
    for seed in cfg.seeds if cfg.steps else ():
        key = f"ours, seed {seed}" if seed else "ours"
        HUMANOID.each("walking", [key], lambda _, k=seed: _walked(cfg, k), fresh=cfg.fresh)
    found = HUMANOID.load()["runs"]["walking"]
    rows = [
        (key, run["what"], run["falls"], f"{run['error']:.3f}", f"{run['turn_error']:.3f}", f"{run['power_w']:.0f}")
        for key, run in found.items()
    ]
    numbers: Numbers = {"velocity_falls": None, "velocity_error": None, "minutes_velocity": None}
    if ours := [run for key, run in found.items() if key.startswith("ours")]:
        numbers = {
            "velocity_falls": max(run["falls"] for run in ours),
            "velocity_error": median(run["error"] for run in ours),
            "minutes_velocity": median(run["minutes"] for run in ours),
        }
    text = f"""## Walking: g1-velocity

Commands up to 0.8 m/s forward, 0.5 m/s back, 0.3 m/s sideways and 0.2 rad/s, drawn anew every few seconds, {TRIALS}
episodes of 20 s, sensor noise on, nominal robot, no pushes. Asked of ours: no falls and at most 0.15 m/s after 30
minutes. {"" if ours else "Ours has not been trained to a result."}

{table(("policy", "training", "falls of 100", "error m/s", "turn rad/s", "power W"), rows)}
"""
    return numbers, text


def _up_to(task: Task) -> Task:
    assert isinstance(task.goal, VelocityGoal)
    return replace(task, goal=replace(task.goal, forward=(-0.5, 0.8), turn=(-0.2, 0.2), standing=0.1))


def _walked(cfg: BenchCfg, seed: int) -> Numbers:
    path = cfg.runs / (f"velocity-{seed}" if seed else "velocity")
    run = RunCfg(task="g1-velocity", seed=seed, threads=cfg.threads, learner=default_learner("g1-velocity"))
    folder, minutes = RunFolder(path), _trained(run, path, cfg.steps)
    env = _env(_up_to(load_task("g1-velocity")), cfg, randomize=False)
    result = assess(env, PolicyRunner(folder.newest_policy(), TRIALS), env.task.score, 20.0)
    made = int(folder.newest().facts["steps"])
    what = f"{made / 1e6:.1f} M steps, {minutes:.0f} minutes of one core"
    return {"what": what, "minutes": minutes, **_walk_numbers(asdict(result))}


def _their_walk(cfg: BenchCfg) -> Numbers:
    assert cfg.policies is not None
    place = cfg.policies / "g1_velocity"
    layout = read_layout(place / "deploy.yaml", joint_names=load_robot("g1").spec.joint_names)
    settings = EnvCfg(nenv=TRIALS, threads=cfg.threads, seed=ASSESS_SEED, randomize=False, pushes=False, stagger=False)
    env, policy = open_witness(place / "policy.onnx", layout, _up_to(load_task("g1-velocity")), settings)
    result = assess(env, policy, env.task.score, 20.0)
    return {"what": "Isaac Lab, GPU", "minutes": None, **_walk_numbers(asdict(result))}


def _walk_numbers(found: Numbers) -> Numbers:
    return {key: found[key] for key in ("falls", "error", "turn_error", "power_w")}


# --- policies of others ---
def witnesses(cfg: BenchCfg) -> tuple[Numbers, str]:
    found = HUMANOID.each("witnesses", list(_WITNESSES), lambda key: _dance(cfg, key), fresh=cfg.fresh)
    rows = [
        (key, run["trials"], f"{100 * run['success']:.0f} %", f"{run['mm']:.1f}", f"{run['global_mm']:.0f}")
        for key, run in found.items()
    ]
    plain = found["as it is"]
    text = f"""## A dance of others in our g1

`g1_dance_102` (BeyondMimic style, trained in Isaac Lab on a GPU, danced by real G1s) at its own gains and
observations, read from its own `config.yaml`; its CSV, brought onto the ground by `trueup motion import --mend`, is the
motion of `g1-track`. From the first row to the last: {plain["seconds"]:.1f} s; without sensor noise all trials are
alike. No number of our robot was fitted to it.
Asked: the whole motion with at most 25 mm. The last two rows say what the ranges of a task are: `g1-track` draws
encoder offsets of 0.01 rad, no slopes, no restitution (as mjlab's port of BeyondMimic), chosen after offsets, slopes,
restitution and slippery ground were seen to spoil most trials in the ranges for robots that walk (0.05 rad, slopes of
3 degrees, restitution up to 0.5). In those hardly an episode of this dance reaches its end either.

{table(("g1", "trials", "to the end", "E_mpjpe mm", "E_g-mpjpe mm"), rows)}

`g1_velocity` of others walks in our g1 too: the section on walking, and more of it in `prove.md`.
"""
    return {
        "dance_mm": plain["mm"],
        "dance_success": plain["success"],
        "dance_noise_mm": found["sensor noise"]["mm"],
    }, text


def _no_change(env: TaskEnv) -> None:
    """As it is."""


def _late(env: TaskEnv) -> None:
    env.sim.params.set("delay", 0.02)


def _dry(env: TaskEnv) -> None:
    env.sim.params.set("friction", 0.03 * env.robot.spec.torque_limit)


def _late_and_dry(env: TaskEnv) -> None:
    _late(env)
    _dry(env)


@dataclass(frozen=True)
class _Witness:
    """What is changed of our robot; `ranges` are drawn for every trial."""

    trials: int
    change: Callable[[TaskEnv], None] = _no_change
    noise: bool = False
    ranges: Ranges | None = None


_WITNESSES = {
    "as it is": _Witness(4),
    "sensor noise": _Witness(20, noise=True),
    "commands 20 ms late": _Witness(4, _late),
    "dry friction 3 % of the limit": _Witness(4, _dry),
    "20 ms late and 3 % dry friction": _Witness(4, _late_and_dry),
    "sensor noise, ranges of g1-track": _Witness(TRIALS, noise=True, ranges=tracking_ranges("torso_link")),
    "sensor noise, ranges for walking robots": _Witness(TRIALS, noise=True, ranges=locomotion_ranges("torso_link")),
}


def _dance(cfg: BenchCfg, key: str) -> Numbers:
    assert cfg.policies is not None, "name the folder of policies with --policies"
    case = _WITNESSES[key]
    place, robot = cfg.policies / "g1_dance_102", load_robot("g1")
    motion, _ = mend_motion(open_motion(place / _DANCE, robot), robot)
    file = write_motion(motion, cfg.runs / "dance.npz")
    task = replace(load_task(f"g1-track:{file.absolute()}"), start=Start(), randomize=case.ranges or {})
    if not case.noise:
        task = replace(task, sensors=SensorCfg())
    settings = EnvCfg(nenv=case.trials, threads=cfg.threads, seed=ASSESS_SEED, pushes=False, stagger=False)
    env, policy = open_witness(place / "policy.onnx", place / "config.yaml", task, settings)
    case.change(env)
    return {"trials": case.trials, "seconds": motion.seconds, **_trials(env, policy)}


# --- retargeting ---
_CLIPS = ("squat", "arm_raise", "side_step", "walk", "turn", "kick", "jump")
_FLAWS = {"slide_m_s": 0.05, "sink_m": 0.03, "noise_m": 0.001}


def retargeted(cfg: BenchCfg) -> tuple[Numbers, str]:
    robot = load_robot("g1")
    clips: dict[str, tuple[KeyPoints, RetargetCfg]] = {
        name.replace("_", " "): (enlarged(make_motion(name, robot), **_FLAWS), RetargetCfg()) for name in _CLIPS
    }
    for points in (lifting(), stepping()):
        clips[f"{points.source}, limb by limb"] = points, RetargetCfg(mesh=False)
        clips[f"{points.source}, mesh kept"] = points, RetargetCfg(mesh=True)
    if cfg.policies is not None:
        clips["dance of others"] = key_points(open_motion(cfg.policies / "g1_dance_102" / _DANCE, robot)), RetargetCfg()
    found = {name: retarget(points, robot, options) for name, (points, options) in clips.items()}
    rows = [(name, *_pair_of_cells(one), f"{one.rows_per_s:.0f}") for name, one in found.items()]
    head = ("clip", "skate cm/s", "below ground mm", "beyond limits rad", "of motor speed %", "collision mm",
            "rows that collide %", "hand to thing mm", "rows/s")  # fmt: skip
    slowest = min(one.rows_per_s for one in found.values())
    numbers: Numbers = {
        "retarget_rows_per_s": slowest,
        "retarget_skate_worst_cm_s": 100 * max(one.after.skate_m_s for one in found.values()),
        "retarget_penetration_worst_mm": 1e3 * max(one.after.penetration_m for one in found.values()),
        "retarget_limits_worst_rad": max(one.after.beyond_limits_rad for one in found.values()),
        "retarget_collision_worst_mm": 1e3 * max(one.after.collision_m for one in found.values()),
    }
    text = f"""## Retargeting

Key points of a person to g1's 29 joints, before → after: plain inverse kinematics of the same scaled points (no limits,
feet not held, collisions allowed) and `trueup motion retarget`. The person is 1.75 m tall with other proportions than
the robot and made of trueup's own motions (no recording of a person ships with the project), with the flaws of motion
capture planted: everything slides at 5 cm/s, stands 3 cm too low and is noisy by 1 mm, which alone makes points jitter
at about 7 cm/s. "Lifting" holds a box between the hands, "stepping" steps onto one; "hand to thing" is by how much a
hand's distance to what it touches differs from the source's. Skate is the mean speed of soles while the source's feet
stand. Rows/s on one core, whole clip, all included; asked are 30.

{table(head, rows)}
"""
    return numbers, text


def _pair_of_cells(one: Retargeted) -> list[str]:
    def shown(name: str, scale: float, digits: int) -> str:
        before, after = getattr(one.before, name), getattr(one.after, name)
        return "" if after is None else f"{scale * before:.{digits}f} → {scale * after:.{digits}f}"

    assert isinstance(one.after, Quality)
    return [
        shown("skate_m_s", 100, 2),
        shown("penetration_m", 1e3, 1),
        shown("beyond_limits_rad", 1, 3),
        shown("speed_use", 100, 0),
        shown("collision_m", 1e3, 1),
        shown("colliding", 100, 0),
        shown("touch_m", 1e3, 1),
    ]


# --- check ---
def checked(cfg: BenchCfg) -> tuple[Numbers, str]:
    robot = load_robot("g1")
    motion = make_motion("walk", robot)
    if cfg.policies is not None:
        motion = open_motion(cfg.policies / "g1_dance_102" / _DANCE, robot)
    clean = {one.code for one in check_motion(motion, robot).findings}
    rows, right = [], 0
    for what, (spoil, code) in CASES.items():
        report = check_motion(spoil(motion, robot), robot)
        found = [one for one in report.findings if one.code not in clean or one.code == code]
        is_found = any(one.code == code for one in found)
        right += is_found
        first = next((one for one in found if one.code == code), None)
        rows.append((what, code, "yes" if is_found else "**no**", "" if first is None else first.evidence))
    source = "the CSV of a public dance" if cfg.policies is not None else "the made walk"
    text = f"""## Checking

{source[0].upper()}{source[1:]}, spoilt in ways that files are: whether `trueup motion check` names the flaw. Unspoilt
it finds: {", ".join(sorted(clean)) or "nothing"}.

{table(("spoilt by", "finding", "found", "evidence"), rows)}
"""
    return {"motion_flaws_found": right, "motion_flaws": len(CASES)}, text


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
