"""The kp trap: a light ankle whose servo is 20 % weaker than its data sheet, fitted from passive and from active data.

Each seed is a fresh twin (own preset, written here): armature, damping, friction, encoder bias and delay hidden, and a
torque constant of 0.8, so that the effective kp is 0.8 of nominal. Passive data are the small motions of a robot that
stands. Then each excitation adds a recording within the same limits and of the same length, and both are fitted
together. The truth is revealed after all fits of a seed.

python benchmarks/calibrate_active.py --seeds 101 102 103 104 105
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from results import publish

from trueup.calibrate.active.plan import ActiveCfg, plan_active
from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg, FitCfg
from trueup.core.files import write_atomic
from trueup.data.log import Log
from trueup.record.session import run_session
from trueup.record.verbs import RecordSessionCfg
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.excitation.limits import LimitCfg
from trueup.robot.excitation.waves import Kind, WaveCfg
from trueup.robot.load import Robot, load_robot
from trueup.twin.truth.seal import reveal
from trueup.world.fitted.calibration import Calibration

ANKLE = "pendulum:load_mass=0.3,load_length=0.05"  # a foot of 0.3 kg, 5 cm from its axis: 0.15 N m of gravity, kp 20
# damping is left at its nominal value: without velocity commands it acts as kd does, and kd takes its error up
PARAMS = "armature,friction,encoder_bias,delay,kp,kd"
USUAL: tuple[Kind, ...] = ("multisine", "chirp", "steps")
PRESET = """
schema = 1
description = "An ankle with a weak motor: what it gives is 0.8 of what it reports"
[joint]
armature_scale = [0.7, 1.6]
armature_add = [0.001, 0.004]
damping_scale = [0.5, 1.5]
friction_scale = [0.5, 2.0]
friction_add = [0.1, 0.2]
encoder_bias = [-0.05, 0.05]
torque_scale = 0.8
[delay]
seconds = [0.004, 0.012]
[sensors]
position_noise = 0.0005
velocity_noise = 0.02
torque_noise = 0.002
encoder_counts = 16384
"""


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """Twins by seed, and the limits of the excitations."""

    seeds: tuple[int, ...] = (101, 102, 103, 104, 105)
    kept: Path | None = None
    """Folder for the results of single seeds; those found there are not run again."""
    amplitude: float = 0.8
    seconds: float = 20.0


def main(cfg: BenchCfg) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        preset = Path(folder) / "ankle.toml"
        preset.write_text(PRESET)
        rows = [row for seed in cfg.seeds for row in kept_or_run(preset, seed, cfg)]
    report(rows, cfg)


def kept_or_run(preset: Path, seed: int, cfg: BenchCfg) -> list[dict[str, object]]:
    file = None if cfg.kept is None else cfg.kept / f"{seed}.json"
    if file is not None and file.is_file():
        return list(json.loads(file.read_text()))
    rows = one_twin(load_robot(ANKLE), preset, seed, cfg)
    if file is not None:
        write_atomic(file, json.dumps(rows))
    return rows


def one_twin(robot: Robot, preset: Path, seed: int, cfg: BenchCfg) -> list[dict[str, object]]:
    """All fits of one twin, then its truth."""
    driver = f"twin:{preset}?seed={seed}"
    standing = played(robot, driver, "multisine", 15.0, 0.03, WaveCfg(low_hz=0.5, high_hz=3.0))
    passive = fitted(robot, [standing], None)
    began = time.monotonic()
    limits = LimitCfg(amplitude_rad=cfg.amplitude)
    plan = plan_active(robot, passive, ActiveCfg(seconds=cfg.seconds, seed=seed, limits=limits))
    planning_s = time.monotonic() - began
    seconds = plan.rehearsal.plan.seconds
    fits = {"passive": passive}
    active = run_session(robot, RecordSessionCfg(driver=driver), plan.rehearsal).log
    fits["active"] = fitted(robot, [standing, active], passive)
    for kind in USUAL:
        log = played(robot, driver, kind, seconds, cfg.amplitude, WaveCfg())
        fits[kind] = fitted(robot, [standing, log], passive)
    truth = reveal(f"{robot.spec.name}-{preset.stem}-{seed}")
    true = float(truth["joint"]["torque_scale"][0])  # type: ignore[index,call-overload]
    predicted = {"active": plan.after, **plan.others}
    rows = [row(seed, name, fit, true, predicted.get(name)) for name, fit in fits.items()]
    rows[1] |= {"planning_s": planning_s, "seconds": seconds, "reached": plan.reached, "gain": plan.gain}
    for shown in rows:
        print(shown, flush=True)
    return rows


def played(robot: Robot, driver: str, kind: Kind, seconds: float, size: float, wave: WaveCfg) -> Log:
    excitation = ExcitationCfg(kind=kind, seconds=seconds, limits=LimitCfg(amplitude_rad=size), wave=wave)
    return run_session(robot, RecordSessionCfg(driver=driver), excitation).log


def fitted(robot: Robot, logs: list[Log], start: Calibration | None) -> Calibration:
    method = FitCfg() if start is None else FitCfg(method="local")
    cfg = CalibrateCfg(params=PARAMS, holdout_share=0.0, fit=method)  # all data go into the fit: the truth is the score
    return calibrate(robot, logs, cfg, start=start).calibration


def row(seed: int, name: str, fit: Calibration, true: float, predicted: float | None) -> dict[str, object]:
    kp = fit.find("kp")
    return {
        "seed": seed,
        "data": name,
        "kp": kp.value,
        "error": abs(kp.value / true - 1),
        "standard_error": kp.standard_error,
        "in_interval": bool(kp.interval[0] <= true <= kp.interval[1]),
        "verdict": kp.verdict,
        "predicted_rms": predicted,
    }


def report(rows: list[dict[str, object]], cfg: BenchCfg) -> None:
    kinds = list(dict.fromkeys(str(row["data"]) for row in rows))
    lines = []
    numbers: dict[str, object] = {}
    for kind in kinds:
        mine = [row for row in rows if row["data"] == kind]
        error = np.array([float(row["error"]) for row in mine])  # type: ignore[arg-type]
        words = [str(row["verdict"]) for row in mine]
        inside = sum(bool(row["in_interval"]) for row in mine)
        said = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        lines.append(f"| {kind} | {np.median(error):.2%} | {error.max():.2%} | {said} | {inside}/{len(mine)} |")
        numbers[f"kp_error_{kind}"] = {"median": float(np.median(error)), "worst": float(error.max())}
    active = [row for row in rows if row["data"] == "active"]
    passive = [str(row["verdict"]) for row in rows if row["data"] == "passive"]
    seconds = np.array([float(row["seconds"]) for row in active])  # type: ignore[arg-type]
    planning = np.array([float(row["planning_s"]) for row in active])  # type: ignore[arg-type]
    gain = np.array([float(row["gain"]) for row in active])  # type: ignore[arg-type]
    worst = max(float(row["error"]) for row in active)  # type: ignore[arg-type]
    numbers |= {
        "kp_error_active_worst_at_most_3_percent": worst <= 0.03,
        "passive_called_identified": passive.count("identified"),
        "predicted_gain_median": float(np.median(gain)),
        "rows": rows,
    }
    text = f"""# Active excitation: the kp trap

An ankle-like joint (0.3 kg, 5 cm from its axis, friction 0.1 to 0.3 N m) whose effective kp is 0.8 of nominal, with
armature, friction, encoder bias, delay, kp and kd free (`--params {PARAMS}`). {len(cfg.seeds)} fresh twins.
Passive: 15 s of motions of 0.03 rad between 0.5 and 3 Hz. The others add the same time within {cfg.amplitude} rad: as
long as active excitation asks for, {seconds.min():.0f} to {seconds.max():.0f} s.

| data | kp error, median | worst | verdict on kp | truth in the 95 % interval |
| --- | --- | --- | --- | --- |
{chr(10).join(lines)}

- Active within 3 % in every case: **{"yes" if worst <= 0.03 else "no"}** (worst {worst:.2%}).
- Passive data called "identified": **{passive.count("identified")}** of {len(passive)} (wanted: 0).
- Predicted standard errors of the weak parameters (root mean square) against the best usual excitation of the same
  length: {np.median(gain):.2f} times smaller (median; {gain.min():.2f} to {gain.max():.2f}). Planning took
  {np.median(planning):.0f} s (median, one core, other work beside it)."""
    publish("calibrate_active", numbers, text)


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
