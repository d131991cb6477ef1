"""Worlds of the transfer table: the user's wrong model, a twin's recordings and fits, and the twin's own truth.

A user has the numbers of a public go2 (every joint with armature 0.01, damping 2 and dry friction 0.2, no delay, no
torque-speed line). The twin is around the built-in go2. The user sees the twin through its driver alone: 60 s in the
air under the task's gains, 40 s to judge fits by, and 24 s of squats on the ground that weigh what it carries. Only
`truth_world` opens the seal.
"""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from actuator_logs import TwinLogs, recorded, twin_logs

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.folder import RungResult
from trueup.calibrate.actuator.ladder import run_ladder
from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg
from trueup.calibrate.weighing import weigh, with_load
from trueup.data.log import Log
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.excitation.limits import LimitCfg
from trueup.robot.load import Robot, load_robot
from trueup.robot.spec import spec_to_toml
from trueup.tasks.build import with_servo
from trueup.tasks.load import load_task
from trueup.twin.truth.seal import reveal
from trueup.world.fitted.calibration import PARAMS_FILE, Calibration, read_calibration, write_calibration
from trueup.world.fitted.fit_parameter import FitParameter
from trueup.world.parameters.params import PARAMETERS

TASK = "go2-velocity"
PUBLIC = {"armature": 0.01, "damping": 2.0, "frictionloss": 0.2}
# standard deviations of the draws around a twin's truth: relative for "log", in SI units for "linear"
SPREAD = {
    "armature": 0.1,
    "damping": 0.1,
    "friction": 0.1,
    "encoder_bias": 0.003,
    "delay": 0.001,
    "kp": 0.03,
    "kd": 0.03,
    "torque_limit": 0.03,
    "stall_torque": 0.03,
    "no_load_speed": 0.03,
    "contact_friction": 0.1,
    "contact_timeconst": 0.1,
    "contact_dampratio": 0.1,
}
_LINEAR = ("encoder_bias", "delay")


@dataclass(frozen=True, kw_only=True)
class World:
    """Where everything about one twin is kept."""

    preset: str
    seed: int
    folder: Path

    @property
    def public(self) -> Path:
        """Folder of the user's robot."""
        return self.folder / "public"


def public_go2(folder: Path) -> Robot:
    """The go2 as anybody has it: geometry and masses of the built-in one, joints of public models."""
    if not folder.exists():
        made = folder.with_suffix(".new")
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(load_robot("go2").model_path.parent, made)
        text = (made / "model.xml").read_text()
        for name, value in PUBLIC.items():
            text = re.sub(rf'(<joint [^>]*{name}=")[^"]*', rf"\g<1>{value:g}", text)
        (made / "model.xml").write_text(text)
        spec = load_robot(made).spec
        joints = tuple(msgspec.structs.replace(joint, knee_speed=None) for joint in spec.joints)
        spec = msgspec.structs.replace(spec, joints=joints, delay_s=0.0)
        (made / "spec.toml").write_text(spec_to_toml(spec))
        made.rename(folder)
    return load_robot(folder)


def user_robot(world: World) -> Robot:
    """What the user fits: the public model under the task's gains."""
    return with_servo(public_go2(world.public), load_task(TASK).servo)


# --- what the user does ---
def recordings(world: World) -> TwinLogs:
    """Logs of the twin in the air, through its driver; recorded once."""
    twin = with_servo(load_robot("go2"), load_task(TASK).servo)
    return twin_logs(twin, world.preset, world.seed, world.folder, gain=False)


def squats(world: World) -> Log:
    """A log of the twin on the ground."""
    excitation = ExcitationCfg(kind="squat", seconds=24.0, limits=LimitCfg(amplitude_rad=0.8))
    path = world.folder / "logs" / "squat.mcap"
    return recorded(load_robot("go2"), world.preset, world.seed, excitation, path, options="&base=free")


def weighed(world: World, fit: Path) -> Path:
    """Folder of a calibration with the load that the squats show."""
    folder = fit.with_name(f"{fit.name}-weighed")
    if not (folder / PARAMS_FILE).exists():
        robot, found = user_robot(world), read_calibration(fit)
        write_calibration(with_load(robot, found, weigh(robot, [squats(world)], found)), folder)
    return folder


def fitted(world: World) -> Path:
    """Folder of the calibration `pace` from the public model."""
    folder = world.folder / "fit"
    if not (folder / PARAMS_FILE).exists():
        logs = recordings(world)
        cfg = CalibrateCfg(params="pace")
        calibrate(user_robot(world), logs.train, cfg, holdout=logs.unseen, folder=folder, resume=True).write(folder)
    return folder


def learned(world: World) -> tuple[Path, Path]:
    """Folders of the ladder's `pace`, fitted at the rate of the task's physics, and of the net on top of it."""
    logs = recordings(world)
    folder = world.folder / "ladder"
    run_ladder(
        user_robot(world), logs.train, LadderCfg(rungs="pace,uan"), holdout=logs.unseen, folder=folder, resume=True
    )
    return folder / "rungs" / "pace", folder / "rungs" / "uan"


# --- the limit ---
def truth_world(world: World) -> Path:
    """The twin's truth as far as our simulator has it: a robot folder with its masses, and params.json of the rest.

    Left out: springs, play, hysteresis and bristles, friction of load, sagging supply and heat.
    """
    folder = world.folder / "truth"
    if not (folder / PARAMS_FILE).exists():
        recordings(world)  # the seal is written when the twin starts
        sealed: dict[str, Any] = reveal(f"go2-{world.preset}-{world.seed}")
        made = folder.with_suffix(".new")
        shutil.rmtree(made, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(load_robot("go2").model_path.parent, made)
        _write_masses(made / "model.xml", sealed)
        write_calibration(_as_calibration(read_calibration(fitted(world)), sealed), made)
        made.rename(folder)
    return folder


def _write_masses(file: Path, sealed: dict[str, Any]) -> None:
    """Masses, centres of mass and inertias of the twin, and its payload (a ball of 5 cm radius) on the base."""
    tree = ElementTree.parse(file)
    bodies = {str(body.get("name")): body for body in tree.iter("body")}
    truth = sealed["body"] or {"names": []}
    for k, name in enumerate(truth["names"]):
        inertial = bodies[name].find("inertial")
        assert inertial is not None
        scale = truth["mass_scale"][k]
        _scale(inertial, "mass", scale)
        _scale(inertial, "fullinertia", scale * truth["inertia_scale"][k])
        moved = np.array(str(inertial.get("pos")).split(), float) + truth["com_offset"][k]
        inertial.set("pos", _text(moved))
    load = sealed["payload"]
    if load is not None and load["mass"] > 0:
        body = ElementTree.SubElement(bodies["base"], "body", name="payload", pos=_text(load["offset"]))
        moment = 0.4 * load["mass"] * 0.05**2
        ElementTree.SubElement(
            body, "inertial", pos="0 0 0", mass=f"{load['mass']:.9g}", diaginertia=_text([moment] * 3)
        )
    tree.write(file)


def _scale(element: ElementTree.Element, attribute: str, by: float) -> None:
    element.set(attribute, _text(by * np.array(str(element.get(attribute)).split(), float)))


def _text(values: Any) -> str:
    return " ".join(f"{value:.9g}" for value in values)


def _as_calibration(like: Calibration, sealed: dict[str, Any]) -> Calibration:
    """A calibration that has found the truth; draws are as narrow as SPREAD says."""
    entries = list(_entries(like, sealed))
    pattern = like.estimates[0]
    estimates = tuple(
        msgspec.structs.replace(
            pattern,
            parameter=entry,
            value=value,
            standard_error=entry.slope(value),
            interval=tuple(float(v) for v in entry.to_value(np.array([-1.96, 1.96]))),
            verdict="identified",
            ratio=1.0,
            partner="",
            correlation=0.0,
            on_bound=False,
            advice="",
        )
        for entry, value in entries
    )
    count = len(estimates)
    return msgspec.structs.replace(
        like, estimates=estimates, x=[0.0] * count, covariance=np.eye(count).tolist(), notes=("the twin's truth",)
    )


def _entries(like: Calibration, sealed: dict[str, Any]) -> Iterator[tuple[FitParameter, float]]:
    joint, motor, ground = sealed["joint"], sealed["motor"], sealed["ground"]
    spec = load_robot("go2").spec
    for k, name in enumerate(like.joint_names):
        for key in ("armature", "damping", "friction", "encoder_bias"):
            yield _entry(key, (name,), joint[key][k])
        scale = joint["torque_scale"][k]
        for key in ("kp", "kd"):
            yield _entry(key, (name,), scale, mode="times")
        limit = spec.torque_limit[k] if motor is None else motor["torque_limit"][k]
        yield _entry("torque_limit", (name,), scale * limit)
        if motor is not None:
            speed, knee = motor["no_load_speed"][k], motor["knee_speed"][k]
            yield _entry("no_load_speed", (name,), speed)
            yield _entry("stall_torque", (name,), scale * limit * speed / (speed - knee))
    yield _entry("delay", like.joint_names, sealed["delay_s"] + 0.5 * sealed["jitter_s"], sealed["jitter_s"] / 4)
    if ground is not None:
        for key in ("friction", "timeconst", "dampratio"):
            yield _entry(f"contact_{key}", (), ground[key])


def _entry(
    name: str, of: tuple[str, ...], value: float, more: float = 0.0, mode: Any = "set"
) -> tuple[FitParameter, float]:
    """A parameter whose prior is the truth."""
    linear, width, value = name in _LINEAR, SPREAD[name] + more, float(value)
    entry = FitParameter(
        name=name,
        of=of,
        unit=PARAMETERS[name].unit,
        low=value - 3.0 * width if name == "encoder_bias" else max(0.0, value - 3.0 * width) if linear else 0.5 * value,
        high=value + 3.0 * width if linear else 2.0 * value,
        scale="linear" if linear else "log",
        offset=0.0,
        prior=float(value if linear else np.log(value)),
        width=width,
        mode=mode,
        label=" ".join([name, *of[:1]]),
    )
    return entry, value


# --- what the fits came to ---
def air_errors(world: World) -> dict[str, float]:
    """Held-out open-loop error in the air, rad: the public model, the fit, and the ladder's rungs if it was climbed."""
    found = read_calibration(fitted(world))
    assert found.holdout_nominal is not None
    assert found.holdout_calibrated is not None
    out = {"air_public": found.holdout_nominal.open_loop_mean, "air_fit": found.holdout_calibrated.open_loop_mean}
    for rung in ("pace", "uan"):
        file = world.folder / "ladder" / "rungs" / rung / "rung.json"
        if file.exists():
            scores = msgspec.json.decode(file.read_bytes(), type=RungResult).scores
            assert scores is not None
            out[f"air_ladder_{rung}"] = scores.whole.mean
    return out
