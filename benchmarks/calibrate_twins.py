"""Twins with hidden parameters, fitted without looking and scored afterwards: coverage, honesty, invisibility."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from trueup.calibrate.calibrate import Fit, calibrate
from trueup.calibrate.config import CalibrateCfg, WindowCfg
from trueup.data.log import Log
from trueup.record.session import run_session
from trueup.record.verbs import RecordSessionCfg
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.excitation.limits import LimitCfg
from trueup.robot.excitation.waves import WaveCfg
from trueup.robot.load import Robot, load_robot
from trueup.twin.truth.seal import reveal

HERE = Path(__file__).resolve().parent
QUANTISED = HERE / "pace_quantised.toml"
NAMES = ("armature", "damping", "friction", "encoder_bias", "delay")
Numbers = dict[str, object]


def record_twin(robot: Robot, preset: str | Path, seed: int, excitation: ExcitationCfg | None = None) -> Log:
    """A log of a twin's own process in lock-step."""
    motion = excitation or ExcitationCfg(seconds=20.0, seed=seed)
    return run_session(robot, RecordSessionCfg(driver=f"twin:{preset}?seed={seed}"), motion).log


def truth_of(robot: Robot, preset: str | Path, seed: int) -> dict[str, np.ndarray]:
    """The twin's truth by the names that a fit uses; only called when a fit is done.

    Inertias and torques are in units of the torque that the drives report: with gains taken as they are reported, only
    ratios to the motor's strength can be seen from positions.
    """
    label = Path(preset).stem
    sealed = reveal(f"{robot.spec.name}-{label}-{seed}")
    joint, n = sealed["joint"], robot.spec.njoint
    out = {name: np.array(joint[name]) for name in NAMES if name != "delay"}
    for name in ("armature", "damping", "friction"):
        out[name] = out[name] / np.array(joint["torque_scale"])
    # a command with jitter arrives half of it later on average
    return out | {"delay": np.full(n, sealed["delay_s"] + 0.5 * sealed["jitter_s"])}


def compare(robot: Robot, fit: Fit, truth: dict[str, np.ndarray]) -> Numbers:
    """Errors of every estimate: relative, and in standard errors."""
    result = fit.calibration
    rows = []
    for k, estimate in enumerate(result.estimates):
        entry = estimate.parameter
        true = float(truth[entry.name][robot.spec.joint_names.index(entry.of[0])])
        score = abs(result.x[k] - entry.to_x(min(max(true, entry.low), entry.high))) / estimate.ratio
        rows.append((entry.name, abs(estimate.value / true - 1.0), score, estimate.verdict))
    seen = [row for row in rows if row[3] != "not visible"]
    near = {name: [r for r in seen if r[0] == name] for name in NAMES}
    assert result.holdout_calibrated is not None
    assert result.holdout_nominal is not None
    return {
        "coverage": float(np.mean([r[1] < 0.05 or r[2] < 2.0 for r in seen])),
        "within_2_se": float(np.mean([r[2] < 2.0 for r in seen])),
        "within_2_se_by_name": {n: float(np.mean([r[2] < 2.0 for r in v])) for n, v in near.items() if v},
        "median_error_by_name": {n: float(np.median([r[1] for r in v])) for n, v in near.items() if v},
        "delay_error_ms": 1e3 * abs(result.find("delay").value - float(truth["delay"][0])),
        "identified": sum(r[3] == "identified" for r in rows),
        "holdout_nominal": result.holdout_nominal.open_loop_mean,
        "holdout": result.holdout_calibrated.open_loop_mean,
        "structured": result.misfit.structured,
        "told": any("structured" in note and "learned actuator" in note for note in result.notes),
    }


def planted(preset: str | Path, seed: int, params: str = "pace") -> Numbers:
    """One twin of a go2 in the air, fitted and compared."""
    robot = load_robot("go2")
    log = record_twin(robot, preset, seed)
    wall, cpu = time.perf_counter(), time.process_time()
    fit = calibrate(robot, [log], CalibrateCfg(params=params))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    found = compare(robot, fit, truth_of(robot, preset, seed))
    return found | {"wall_s": wall, "cpu_s": cpu, "rollouts": fit.calibration.effort.rollouts}


# --- parameters made invisible ---
def constant_joint(seed: int) -> Numbers:
    """Three joints of a go2, drawn by the seed, hold their pose while the others move."""
    robot = load_robot("go2")
    names = robot.spec.joint_names
    held = set(np.random.default_rng(seed).choice(names, 3, replace=False).tolist())
    moving = tuple(name for name in names if name not in held)
    log = record_twin(robot, QUANTISED, seed, ExcitationCfg(seconds=20.0, seed=seed, joints=moving))
    fit = calibrate(robot, [log], CalibrateCfg())
    return _false(fit, lambda name, of: bool(set(of) & held) and len(of) == 1)


def compensated_load(seed: int) -> Numbers:
    """A pendulum whose load's weight is taken by gravity compensation: its mass only adds to the armature."""
    with tempfile.TemporaryDirectory() as folder:
        robot = _pendulum(Path(folder) / "robot", gravcomp=True)
        preset = _preset(Path(folder) / "load.toml", "[body]\nmass_scale = [0.75, 1.3]\n")
        log = record_twin(robot, preset, seed, ExcitationCfg(seconds=20.0, seed=seed))
        cfg = CalibrateCfg(params="pace,mass_scale", bodies=("load",), check=False)
        fit = calibrate(robot, [log], cfg)
    return _false(fit, lambda name, of: name in ("mass_scale", "encoder_bias"))


def single_load(seed: int) -> Numbers:
    """A pendulum near the horizontal in slow small motion: the load is always the same, so friction of load is too."""
    with tempfile.TemporaryDirectory() as folder:
        robot = _pendulum(Path(folder) / "robot", default=1.35)
        friction = '[friction]\nkind = "stribeck"\nstiction = 0.0\nload = [0.03, 0.1]\nload_rest = 0.0\n'
        preset = _preset(Path(folder) / "load.toml", friction)
        motion = ExcitationCfg(
            seconds=20.0, seed=seed, wave=WaveCfg(low_hz=0.2, high_hz=1.0), limits=LimitCfg(amplitude_rad=0.08)
        )
        log = record_twin(robot, preset, seed, motion)
        cfg = CalibrateCfg(params="friction:M3", check=False, window=WindowCfg(max_windows=8))
        fit = calibrate(robot, [log], cfg)
    return _false(fit, lambda name, of: name == "friction_kl")


def _false(fit: Fit, invisible: object) -> Numbers:
    """How many of the parameters made invisible are called identified."""
    assert callable(invisible)
    mine = [e for e in fit.calibration.estimates if invisible(e.parameter.name, e.parameter.of)]
    wrong = [e.parameter.label for e in mine if e.verdict == "identified"]
    words = {e.parameter.label: f"{e.verdict} ({e.ratio:.2f})" for e in mine}
    return {"invisible": len(mine), "false_identified": len(wrong), "wrong": wrong, "verdicts": words}


def _pendulum(folder: Path, *, gravcomp: bool = False, default: float = 0.0) -> Robot:
    """A copy of the pendulum with a compensated load, or another default pose."""
    shutil.copytree(load_robot("pendulum").model_path.parent, folder)
    model, spec = folder / "model.xml", folder / "spec.toml"
    if gravcomp:
        text = model.read_text()
        assert '<body name="load"' in text
        model.write_text(text.replace('<body name="load"', '<body name="load" gravcomp="1"'))
    spec.write_text(spec.read_text().replace("default = 0.0\n", f"default = {default}\n"))
    return load_robot(folder)


def _preset(path: Path, more: str) -> Path:
    path.write_text(QUANTISED.read_text() + "\n" + more)
    return path


INVISIBLE = {"constant joint": constant_joint, "compensated load": compensated_load, "single load": single_load}
