"""Runs of a trained policy on twins in lock-step, as `trueup deploy` would record them, with planted faults."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from made_deploys import standing_bundle

from trueup.data.log import Log
from trueup.deploy.control.controller import Controller
from trueup.gap.symptoms.run import Run
from trueup.hardware.driver import RobotState
from trueup.hardware.drivers.open import open_driver
from trueup.policy.bundle.bundle import PolicyBundle, write_bundle
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.net import NetWiring, PolicyNet
from trueup.policy.normalizer import EPS, Normalizer
from trueup.policy.reading import gravity_in_body
from trueup.robot.load import Robot
from trueup.twin.truth.preset import PRESETS

_JOINTS = ("joint_pos", "joint_vel", "joint_torque", "joint_temperature")


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A fault: sections of the preset that differ, and how the robot is put down before the policy runs."""

    sections: str = ""
    without: tuple[str, ...] = ()
    crooked_rad: float = 0.0


def preset_file(folder: Path, planted: Planted) -> Path:
    """The preset `mild` with some sections replaced."""
    kept, drop = [], False
    for line in (PRESETS / "mild.toml").read_text().splitlines():
        if line.startswith("["):
            drop = line.strip("[]") in planted.without
        kept += [] if drop else [line]
    path = folder / "planted.toml"
    path.write_text("\n".join(kept) + "\n" + planted.sections + "\n")
    return path


def twin_run(
    bundle: PolicyBundle, robot: Robot, preset: Path | str, seed: int, command: tuple[float, ...], *,
    seconds: float = 8.0, crooked_rad: float = 0.0, name: str = "run",
) -> Run:  # fmt: skip
    """Stand up, then run the policy until its time is over or the robot lies."""
    control = Controller(bundle, robot.spec.joint_names)
    per = round(200.0 / control.control_hz)
    driver = open_driver(f"twin:{preset}?seed={seed}&base=free", robot, command_hz=200.0, lockstep=True)
    driver.connect()
    try:
        pose = control.default_pose + crooked_rad * np.where(np.arange(robot.spec.njoint) % 6 < 3, 1.0, -1.0)
        state = driver.read()
        start = np.array(state.joint_pos)
        for k in range(100):
            share = min(1.0, k / 60)
            for _ in range(per):
                driver.write(control.command(start + share * (pose - start)))
            state = driver.read()
        return _walk(control, driver, state, per, np.array(command, np.float32), seconds, name, pose, bundle)
    finally:
        driver.close()


def _walk(control, driver, state: RobotState, per: int, command, seconds: float, name: str, pose, bundle) -> Run:
    control.restart(pose)
    kept: dict[str, list] = {}
    for _ in range(round(seconds * control.control_hz)):
        step = control.step(state, command)
        now = {one: getattr(state, one) for one in (*_JOINTS, "imu_quat", "imu_gyro")}
        now |= {"target_pos": step.target, "voltage": [state.voltage], "time": state.time_s}
        for key, value in now.items():
            kept.setdefault(key, []).append(np.array(value, np.float64))
        if -gravity_in_body(np.asarray(state.imu_quat)[None])[0, 2] < np.cos(1.0):
            break
        for _ in range(per):
            driver.write(control.command(step.target))
        state = driver.read()
    time = np.array(kept.pop("time"))
    signals = {key: np.array(values) for key, values in kept.items()}
    log = Log(time=time, joint_names=control.joint_names, signals=signals, meta={"control_hz": control.control_hz})
    asked = np.tile(np.asarray(command, np.float64), (len(log), 1))
    return Run(name=name, log=log, control_hz=control.control_hz, command=asked, bundle=bundle.path)


def trotting_bundle(folder: Path, *, turn: float = -0.25, lift: float = 1.0, hz: float = 2.6) -> PolicyBundle:
    """A policy of a go2 that trots on the spot and turns, without training: its last action is its clock.

    Thigh and calf of a leg are turned by a constant angle in every step, a_k = R a_{k-1} + b, so that they go round
    c = (I - R)^-1 b; diagonal legs have c, the others -c. The hips follow, front against rear. A little of the joints'
    speed is added, as policies have it.
    """
    passport = standing_bundle(folder / "standing").passport
    seen = passport.policy.observation
    weight, bias = np.zeros((12, seen.nactor), np.float32), np.zeros(12, np.float32)
    at = {term.signal: part for term, part in zip(seen.terms, seen.slices, strict=True)}
    angle = 2.0 * np.pi * hz / passport.policy.control_hz
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for leg in ("FL", "FR", "RL", "RR"):
        hip, thigh, calf = (seen.joint_names.index(f"{leg}_{part}_joint") for part in ("hip", "thigh", "calf"))
        last = at["action"].start
        pair, side = [thigh, calf], 1.0 if leg in ("FL", "RR") else -1.0
        weight[np.ix_(pair, [last + j for j in pair])] = turned
        bias[pair] = (np.eye(2) - turned) @ (side * np.array([0.0, lift]))
        weight[hip, last + thigh] = turn if leg[0] == "F" else -turn
        weight[range(12), [at["joint_vel"].start + j for j in range(12)]] = -0.05
    net = PolicyNet(spec=NetWiring(), actor=((weight, bias),), normalizer=_passing(seen.nactor))
    return write_bundle(folder / "trotting", passport, policy_onnx(net))


def _passing(size: int) -> Normalizer:
    """A normaliser that passes its input on."""
    out = Normalizer(size)
    out.mean, out.var, out.count = np.zeros(size), np.full(size, (1.0 - EPS) ** 2), 1.0
    return out
