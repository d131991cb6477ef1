"""What deploy refuses before a joint moves: 50 seeded mismatches between a bundle, a robot and its driver.

    python benchmarks/deploy_preflight.py

Two bundles of go2 are made (a plain network and a student with memory; random weights: what is refused does not depend
on what was learned). A mismatch is made in one of the places where it happens in practice:

passport  spec.json is changed and every hash is made right again, as by somebody who edits a bundle by hand
robot     the robot's spec or model is another one: limits, pose, name, joints, gains, rates
driver    joints in another order, another rate, servos whose gains cannot be commanded
state     what the robot reports before it moves: offsets, NaN, IMU rotated or missing, hot motors

Every one must end in a TrueupError that names what differs; the sound bundle on the sound robot must pass.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
from parts import DEPLOY, table
from prove_refused import default_pose, frame, gains, history, made, normalizer, order, rate, scale, sign

from trueup.core.errors import TrueupError
from trueup.deploy.preflight import check_driver, check_passport, check_states, refuse
from trueup.hardware.driver import RobotState
from trueup.policy.bundle.bundle import load_bundle
from trueup.policy.bundle.manifest import SPEC, read_files, write_files
from trueup.robot.load import Robot, load_robot
from trueup.robot.spec import RobotSpec

COUNT = 50
Rng = np.random.Generator
Case = tuple[str, str, str, str]


class Scene:
    """A bundle, a robot, its driver and its first state, each of which a mismatch may change."""

    def __init__(self, bundle: Path, folder: Path) -> None:
        self.bundle, self.folder, self.robot = bundle, folder, load_robot("go2")
        spec = self.robot.spec
        self.driver = SimpleNamespace(joint_names=spec.joint_names, realtime=True, command_hz=200.0)
        zero = np.zeros(spec.njoint)
        self.state = RobotState(
            sequence=1, time_s=1.0, joint_pos=spec.default_pose, joint_vel=zero, joint_torque=zero,
            joint_temperature=zero + 30.0, voltage=28.0, imu_quat=np.array([1.0, 0.0, 0.0, 0.0]), imu_gyro=np.zeros(3),
            imu_acc=np.array([0.0, 0.0, 9.81]),
        )  # fmt: skip

    def preflight(self) -> None:
        """What `trueup deploy` asks before anything moves."""
        passport = load_bundle(self.bundle).passport
        later = replace(self.state, sequence=2)
        refuse(check_passport(passport, self.robot))
        states = check_states(passport, self.robot, [self.state, later])
        refuse(check_driver(passport, self.robot, self.driver) + states)

    def with_spec(self, **parts: Any) -> None:
        self.robot = replace(self.robot, spec=msgspec.structs.replace(self.robot.spec, **parts))
        self.driver.joint_names = self.robot.spec.joint_names

    def with_joint(self, k: int, **parts: Any) -> str:
        joints = list(self.robot.spec.joints)
        joints[k] = msgspec.structs.replace(joints[k], **parts)
        self.with_spec(joints=tuple(joints))
        return joints[k].name

    def with_state(self, name: str, k: int, value: float) -> str:
        values = np.array(getattr(self.state, name))
        values[k] = value
        self.state = replace(self.state, **{name: values})
        return self.robot.spec.joint_names[k]


# --- passport ---
def edited(change: Callable[[dict[str, Any], Rng], str]) -> Callable[[Scene, Rng], str]:
    """A change of spec.json under hashes that fit again."""

    def mismatch(scene: Scene, rng: Rng) -> str:
        manifest, files, _ = read_files(scene.bundle)
        spec = json.loads(files[SPEC])
        what = change(spec, rng)
        shutil.rmtree(scene.folder, ignore_errors=True)
        write_files(scene.folder, files | {SPEC: json.dumps(spec).encode()}, manifest.opset, manifest.operators)
        scene.bundle = scene.folder
        return what

    return mismatch


# --- robot ---
def robot_pose(scene: Scene, rng: Rng) -> str:
    k, by = int(rng.integers(12)), float(rng.choice([-0.1, -0.02, 0.02, 0.1]))
    name = scene.with_joint(k, default=scene.robot.spec.joints[k].default + by)
    return f"default pose of {name} {by:+g} rad"


def robot_name(scene: Scene, rng: Rng) -> str:
    name = str(rng.choice(["b2", "go1", "go2w"]))
    scene.with_spec(name=name)
    return name


def robot_joints(scene: Scene, rng: Rng) -> str:
    return f"{scene.with_joint(int(rng.integers(12)), name='tail_joint')} instead of a leg's"


def robot_limits(scene: Scene, rng: Rng) -> str:
    k = int(rng.integers(12))
    joint = scene.robot.spec.joints[k]
    if rng.random() < 0.5:
        return f"torque of {scene.with_joint(k, torque=0.4 * joint.torque)} x 0.4"
    high = joint.position[1]
    middle = joint.default + 0.3 * (high - joint.default)
    return f"range of {scene.with_joint(k, position=(middle, high), default=0.5 * (middle + high))}"


def robot_gains(scene: Scene, rng: Rng) -> str:
    k, name = int(rng.integers(12)), str(rng.choice(["kp", "kd"]))
    factor = float(rng.choice([0.01, 100.0]))
    value = factor * getattr(scene.robot.spec.joints[k], name)
    return f"{name} of {scene.with_joint(k, **{name: value})} x {factor:g}"


def robot_rate(scene: Scene, rng: Rng) -> str:
    hz = float(rng.choice([5.0, 10.0, 400.0, 1000.0]))
    scene.with_spec(control_hz=hz, physics_hz=1000.0)
    return f"control {hz:g} Hz"


def robot_model(scene: Scene, rng: Rng) -> str:
    other = scene.folder.with_suffix(".xml")
    text = scene.robot.model_path.read_text()
    other.write_text(text + f"<!-- {rng.integers(1000)} -->")
    scene.robot = Robot(spec=scene.robot.spec, model_path=other)
    return "another file"


# --- driver and state ---
def driver_order(scene: Scene, rng: Rng) -> str:
    names = list(scene.driver.joint_names)
    a, b = (int(k) for k in rng.choice(12, 2, replace=False))
    names[a], names[b] = names[b], names[a]
    scene.driver.joint_names = tuple(names)
    return f"{names[a]} and {names[b]}"


def driver_rate(scene: Scene, rng: Rng) -> str:
    if rng.random() < 0.5:
        scene.driver.realtime, scene.driver.command_hz = False, float(rng.choice([25.0, 100.0, 200.0]))
        return f"lock-step at {scene.driver.command_hz:g} Hz"
    scene.driver.command_hz = float(rng.choice([10.0, 30.0, 40.0]))
    return f"{scene.driver.command_hz:g} Hz"


def driver_gains(scene: Scene, rng: Rng) -> str:
    spec: RobotSpec = scene.robot.spec
    k, factor = int(rng.integers(12)), float(rng.choice([0.5, 0.9, 1.1, 2.0]))
    kp, kd = np.full(12, 25.0), np.full(12, 0.5)
    (kp if rng.random() < 0.5 else kd)[k] *= factor
    scene.driver.fixed_gains = (kp, kd)
    return f"servo of {spec.joint_names[k]} x {factor:g}"


def state_offset(scene: Scene, rng: Rng) -> str:
    k = int(rng.integers(12))
    low, high = scene.robot.spec.joints[k].position
    value = float(rng.choice([low - 0.15, high + 0.15, high + 6.28, np.nan, np.inf]))
    return f"{scene.with_state('joint_pos', k, value)} at {value:.2f} rad"


def state_imu(scene: Scene, rng: Rng) -> str:
    kind = int(rng.integers(4))
    if kind == 0:
        scene.state = replace(scene.state, imu_quat=None, imu_gyro=None)
        return "missing"
    if kind == 1:
        scene.state = replace(scene.state, imu_quat=np.zeros(4))
        return "zero quaternion"
    if kind == 2:
        scene.state = replace(scene.state, imu_quat=np.array([0.0, 1.0, 0.0, 0.0]))
        return "upside down"
    half = np.sqrt(0.5)
    scene.state = replace(scene.state, imu_quat=np.array([half, 0.0, half, 0.0]))
    return "mounted on its side"


def state_hot(scene: Scene, rng: Rng) -> str:
    return f"{scene.with_state('joint_temperature', int(rng.integers(12)), 80.0)} at 80 deg C"


KINDS: dict[str, tuple[tuple[str, Callable[[Scene, Rng], str]], ...]] = {
    "passport": tuple(
        (one.__name__.replace("_", " "), edited(one))
        for one in (order, sign, scale, gains, rate, frame, default_pose, history, normalizer)
    ),
    "robot": (
        ("default pose", robot_pose), ("name", robot_name), ("joints", robot_joints), ("limits", robot_limits),
        ("gains", robot_gains), ("rate", robot_rate), ("model", robot_model),
    ),
    "driver": (("order", driver_order), ("rate", driver_rate), ("gains", driver_gains)),
    "state": (("zero or range", state_offset), ("IMU", state_imu), ("temperature", state_hot)),
}  # fmt: skip


def tried(scene: Scene) -> str:
    """The refusal, "" for none; anything but a TrueupError is a crash."""
    try:
        scene.preflight()
    except TrueupError as error:
        return str(error).partition("refuses:")[2].strip().splitlines()[0] if "refuses:" in str(error) else str(error)
    except Exception as error:
        return f"CRASHED {type(error).__name__}: {error}"
    return ""


def main() -> None:
    cases = [(place, name, change) for place, kinds in KINDS.items() for name, change in kinds]
    found: list[Case] = []
    with tempfile.TemporaryDirectory() as folder:
        bundles = [made(Path(folder), kind) for kind in ("plain", "latent")]
        sound = [tried(Scene(bundle, Path(folder) / "none")) for bundle in bundles]
        for k, (place, name, change) in enumerate(itertools.islice(itertools.cycle(cases), COUNT)):
            scene = Scene(bundles[k % 2], Path(folder) / f"case{k}")
            what = change(scene, np.random.default_rng(k))
            found.append((place, name, what, tried(scene)))
            print(k, *found[-1], flush=True)
    report(found, sound)


def report(found: list[Case], sound: list[str]) -> None:
    refused = [one for one in found if one[3] and not one[3].startswith("CRASHED")]
    accepted = [one for one in found if one not in refused]
    by = Counter((place, name) for place, name, _, _ in found)
    ok = Counter((place, name) for place, name, _, _ in refused)
    first = {(place, name): (what, text) for place, name, what, text in reversed(found)}
    rows = [
        (place, name, f"{ok[place, name]} of {count}", first[place, name][0], _short(first[place, name][1]))
        for (place, name), count in by.items()
    ]
    text = (
        f"## Preflight\n\n{len(refused)} of {len(found)} seeded mismatches were refused before anything moved; the two "
        f"sound bundles on the sound robot were {'accepted' if not any(sound) else 'REFUSED'}. Bundles are of go2, one "
        "plain network and one student with memory. A passport that is edited is signed again, so that its hashes fit. "
        "A task chooses its gains and its rate: those of the robot's spec contradict a policy only where they are far "
        "off (kp by 10 times, the rate by 4); servos whose gains cannot be commanded must have the policy's to 1 %. "
        "A joint that turns the wrong way or is swapped behind the driver is found by the wiggle test.\n\n"
        + table(("place", "mismatch", "refused", "for example", "refusal"), rows)
    )
    numbers = {
        "preflight_mismatches": len(found),
        "preflight_refused": len(refused),
        "preflight_accepted": [f"{place} {name}: {what}" for place, name, what, _ in accepted],
        "preflight_sound_refused": sum(bool(one) for one in sound),
    }
    DEPLOY.merge("preflight", numbers, text, "python benchmarks/deploy_preflight.py")


def _short(text: str) -> str:
    text = re.sub(r"^/\S*/", "", text)
    return text.replace("|", "/")[:110] + ("..." if len(text) > 110 else "")


if __name__ == "__main__":
    main()
