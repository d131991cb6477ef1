"""Is a learned actuator wrong because its inputs leave its fitted range? A section of docs/results/transfer.md.

    python benchmarks/transfer_outside.py --runs FOLDER --bundle theirs.bundle [--twins worn-0]

A policy that is not ours (BUNDLE, `trueup policy import`) walks on the twin; its commands are replayed on the ground in
windows of 0.4 s from the true states, in the fit that a policy would be trained in: without the net, with it as it is
trained under, and with other ways to treat inputs outside the fitted range. --runs is the folder of `transfer.py`;
fits that are not there are made.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray
from on_twin import TwinWorld, upright
from parts import TRANSFER, Numbers, table
from transfer import COMMANDS, BenchCfg, world_of
from transfer_worlds import World, learned, user_robot, weighed

from trueup.data.log import Log
from trueup.hardware.twin_cfg import TwinCfg
from trueup.models.actuator_file import load_actuator
from trueup.models.actuator_net import ActuatorNet
from trueup.policy.bundle.bundle import load_bundle
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.evaluation.evaluate import evaluate
from trueup.tasks.load import load_task
from trueup.twin.firmware import Twin
from trueup.world.actuators.net_actuator import NetActuator, with_net
from trueup.world.actuators.substep import SubstepState
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration, read_calibration
from trueup.world.parameters.able_to_set import able_to_set
from trueup.world.replay.playback import joint_seen, play, set_gains
from trueup.world.replay.tracks import Tracks, lay_tracks

RATE = 200.0  # of the recording; physics of the task
ROBOTS, SECONDS, LENGTH, EVERY = 4, 8.0, 80, 40  # rows of a window, and from one to the next
AFTER = (10, 20, 40, 80)  # rows at which errors are told
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class OutsideCfg:
    """What is measured."""

    runs: Path
    bundle: Path
    twins: tuple[str, ...] = ("worn-0",)
    fresh: bool = False


class Treated(NetActuator):
    """A net whose torque is changed: `keep` is its share, `fade` the distance outside (half ranges) that halves it."""

    keep, fade, most = 1.0, np.inf, np.inf

    def _clip(self, *, count: bool = False) -> None:
        half = 0.5 * (self._high - self._low)
        beyond = np.maximum(self._low - self._signals, self._signals - self._high) / half
        far = np.maximum(beyond, 0.0).max(axis=0)
        self._share = np.where(far > 0, 1.0 / (1.0 + (far / max(self.fade, 1e-9)) ** 2), 1.0)
        super()._clip(count=count)

    def step(self, sim: BatchSim, state: SubstepState) -> FloatArray:
        is_due = self._clock[0] % self.every == 0
        torque = super().step(sim, state)
        if is_due:
            np.clip(self.keep * self._share * torque, -self.most, self.most, out=torque)
        return torque


def treated(**how: float) -> type[NetActuator]:
    return type("Treated", (Treated,), how)


WAYS: dict[str, type[NetActuator] | None] = {
    "without the net": None,
    "inputs clipped (as in training)": NetActuator,
    "faded, half left at 1 half range outside": treated(fade=1.0),
    "faded, half left at 0.5": treated(fade=0.5),
    "faded, half left at 0.25": treated(fade=0.25),
    "nothing outside": treated(fade=0.0),
    "at most 2 N m": treated(most=2.0),
    "at most 0.5 N m": treated(most=0.5),
    "half of it, everywhere": treated(keep=0.5),
}


def main(cfg: OutsideCfg) -> None:
    runs = cfg.runs.resolve()
    os.environ["XDG_STATE_HOME"] = str(runs / "sealed")
    bench = BenchCfg(runs=runs, threads=1)
    found = TRANSFER.each(
        "outside", list(cfg.twins), lambda twin: measure(world_of(bench, twin), cfg.bundle), fresh=cfg.fresh
    )
    twins = "_".join(cfg.twins).replace("_", ",")
    command = f"python benchmarks/transfer_outside.py --runs FOLDER --bundle theirs.bundle --twins {twins}"
    TRANSFER.merge("outside", {}, section(found), command)


def measure(world: World, bundle: Path) -> Numbers:
    """Errors of every way to treat the net, mrad after each of AFTER rows and over all, and the inputs outside."""
    robot, (base, net) = user_robot(world), learned(world)
    fit, tracks = read_calibration(weighed(world, base)), lay_tracks(robot, walk(world, bundle), free_base=True)
    out: Numbers = {}
    for name, kind in WAYS.items():
        out[name] = errors(robot, tracks, fit, load_actuator(net), kind)
        print(name, out[name], flush=True)
    return out


def errors(robot: Robot, tracks: Tracks, fit: Calibration, net: ActuatorNet, kind: type[NetActuator] | None) -> Numbers:
    """Of the joints, root mean square over windows and joints."""
    starts = np.flatnonzero(np.arange(len(tracks.target)) % EVERY == 0)
    starts = np.intersect1d(starts, tracks.starts(LENGTH + 1, (0.1, 1.0)))
    cfg = SimCfg(nsim=len(starts), threads=1, control_hz=RATE, physics_hz=RATE, model=ModelCfg(base="free"))
    cfg = able_to_set(replace(cfg, actuator=replace(cfg.actuator, inputs="servo")), [p.name for p in fit.parameters])
    actuator = None if kind is None else kind(net)
    sim = BatchSim(robot, cfg if actuator is None else with_net(cfg, net), actuator)
    recorded = tracks.recorded(starts, LENGTH, past=20)
    set_gains(sim, recorded)
    fit.apply(sim)
    if actuator is not None:
        actuator.prepare(sim)
    out = play(sim, recorded)
    error = joint_seen(sim, out["qpos"]) - tracks.measured[starts[:, None] + np.arange(1, LENGTH + 1)]
    error = 1e3 * error[~sim.diverged]
    outside = None if actuator is None else round(actuator.guard.worst, 3)
    at = {f"{1e3 * k / RATE:g} ms": _rms(error[:, k - 1]) for k in AFTER}
    return {**at, "all": _rms(error), "outside": outside, "windows": len(error)}


def _rms(values: FloatArray) -> float:
    return round(float(np.sqrt((values**2).mean())), 2)


# --- the walk ---
class Recording(TwinWorld):
    """Twins under a policy, written down at RATE with the true state of the base."""

    rows: list[list[FloatArray]]

    def step(self, targets: FloatArray) -> None:
        kp, kd = self._gains
        for _ in range(round(RATE * self.control_dt)):
            self.rows.append([_row(twin, target) for twin, target in zip(self._twins, targets, strict=True)])
            for twin, target in zip(self._twins, targets, strict=True):
                twin.command(np.stack([target, 0.0 * target, kp, kd, 0.0 * target]))
                twin.period()
        self.frame.forget()


def _row(twin: Twin, target: FloatArray) -> FloatArray:
    state, data = twin.state(), twin.plant.data
    return np.concatenate([state.joint_pos, state.joint_vel, target, data.qpos[:7], data.qvel[:6]])


def walk(world: World, bundle: Path) -> list[Log]:
    """Logs of ROBOTS copies of the twin, whose commands differ."""
    theirs, robot = load_bundle(bundle), load_robot("go2")
    cfg = TwinCfg(preset=world.preset, seed=world.seed, base="free", command_hz=RATE)
    spec, policy = theirs.passport.policy, theirs.runner(ROBOTS)
    twins = Recording([Twin(robot, cfg) for _ in range(ROBOTS)], spec)
    twins.rows = []
    task = load_task(spec.task)
    goal = build(task, EnvCfg(nenv=ROBOTS, threads=1, seed=COMMANDS)).goal
    played = evaluate(twins, policy.act, spec, upright(task), goal, SECONDS)
    assert played.falls == 0, "a robot fell: its windows say nothing about actuators"
    rows, n = np.array(twins.rows), robot.spec.njoint
    names = ("joint_pos", "joint_vel", "target_pos", "base_pos", "base_quat", "base_vel", "imu_gyro")
    ends = np.cumsum([0, n, n, n, 3, 4, 3, 3])
    logs = []
    for k in range(ROBOTS):
        signals = {name: rows[:, k, a:b].copy() for name, a, b in zip(names, ends[:-1], ends[1:], strict=True)}
        signals |= {
            f"target_{name}": np.tile(gain, (len(rows), 1))
            for name, gain in zip(("kp", "kd"), twins._gains, strict=True)
        }
        logs.append(Log(time=np.arange(len(rows)) / RATE, joint_names=robot.spec.joint_names, signals=signals))
    return logs


# --- the page ---
def section(found: dict[str, Any]) -> str:
    after = [f"{1e3 * k / RATE:g} ms" for k in AFTER]
    parts = []
    for twin, ways in found.items():
        rows = [(name, *(one[key] for key in (*after, "all"))) for name, one in ways.items()]
        parts.append(f"{twin}:\n\n" + table(("mrad after", *after, "all 0.4 s"), rows))
    ways = next(iter(found.values()))
    none, clipped = ways["without the net"], ways["inputs clipped (as in training)"]
    worse = 100 * (clipped["all"] / none["all"] - 1)
    share = (clipped["all"] - ways["nothing outside"]["all"]) / (clipped["all"] - none["all"])
    return f"""## Outside the range

Is the learned actuator worse because its inputs leave the range that it was fitted on? `go2_robot_lab` (not ours)
walks on the twin for {ROBOTS} times {SECONDS:g} s; its commands are replayed on the ground, in {clipped["windows"]}
windows of {LENGTH / RATE:g} s from the true states ({100 * clipped["outside"]:.0f} % of the worst input outside).
Joint error:

{chr(10).join(parts)}

In this one walk the net makes the simulator worse, by {worse:.1f} %, where it nearly halves the error in the air.
Fading its correction outside the range, down to none, takes {100 * share:.0f} % of that back: most of what is wrong
comes from inputs inside their ranges, so inputs stay clipped. Most of the error in these windows has other causes
than the actuator. A policy was not trained with a faded net.
"""


if __name__ == "__main__":
    main(tyro.cli(OutsideCfg))
