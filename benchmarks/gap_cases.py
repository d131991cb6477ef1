"""Logs of twins with one planted cause: in the air through a multisine, on the ground under a policy.

A cause is hidden physics (sections of the twin's preset) or stands between program and robot: wiring, encoder zeros,
gains that the log does not tell, a clock, an orientation that drifts. Heat of a robot that walks is drawn again until
it does something: a limit of torque that is not reached changes nothing.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
from scipy.spatial.transform import Rotation

from trueup.data.log import Log
from trueup.deploy.control.controller import ControlCfg, Controller
from trueup.hardware.driver import RobotState
from trueup.hardware.twin_cfg import TwinCfg
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.policy.reading import gravity_in_body
from trueup.robot.excitation.excitation import ExcitationCfg, excite
from trueup.robot.load import Robot, load_robot
from trueup.twin.firmware import Twin

PRESET = Path(__file__).parent / "presets" / "sound.toml"
RATE = 200.0
_STAND, _CHANGE_S, _FALLEN_RAD = 300, 2.5, 0.7
HOT_SHARE, _DRAWS = 0.2, 6  # of the walk in which a hot motor gives all that it still has; draws until it is so
_HOT, _ALL = 0.9, 0.98  # of the cold limit; of what is left
Section = dict[str, dict[str, object]]
Draw = Callable[[float, float], float]


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Where a cause is planted: sections of the preset, and what stands between program and robot.

    order       joint that each column of a command goes to; sign, bias (rad), kp (times): of each joint
    unscaled    term of the observation whose scale the program forgets, by its place among those that have one
    states_too  readings pass the same wiring; clock: factor on the log's time; tilt_rad: of roll and pitch at the end
    """

    preset: Section = field(default_factory=dict)
    order: tuple[int, ...] | None = None
    sign: tuple[float, ...] | None = None
    states_too: bool = False
    bias: tuple[float, ...] | None = None
    kp: float = 1.0
    clock: float = 1.0
    unscaled: int | None = None
    tilt_rad: tuple[float, float] = (0.0, 0.0)


def plant(cause: str, robot: Robot, seed: int, *, walking: bool = False, draw: int = 0) -> Planted:
    """A cause with a size and, where it has one, a joint drawn by the seed (and anew for every `draw`).

    What a policy walks with must leave it legs that carry it: weak and hot motors are weaker in the air.
    """
    rng, n = np.random.default_rng([seed, 71, draw] if draw else [seed, 71]), robot.spec.njoint
    between = lambda low, high: float(rng.uniform(low, high))  # noqa: E731
    either = lambda low, high: between(low, high) * (1.0 if rng.random() < 0.5 else -1.0)  # noqa: E731
    limit = float(np.median(robot.spec.torque_limit))
    match cause:
        case "joint order":
            i, k = sorted(rng.choice(n, 2, replace=False).tolist())
            order = list(range(n))
            order[i], order[k] = k, i
            return Planted(order=tuple(order), states_too=walking and bool(seed % 2))
        case "sign":
            sign = np.ones(n)
            sign[rng.integers(n)] = -1.0
            return Planted(sign=tuple(sign.tolist()), states_too=walking and bool(seed % 2))
        case "offset":
            bias = np.zeros(n)
            for j in rng.choice(n, min(n, int(rng.integers(1, 4))), replace=False):
                bias[j] = either(0.08, 0.2)
            return Planted(bias=tuple(bias.tolist()))
        case "delay":
            return Planted(preset={"delay": {"seconds": between(0.012, 0.028), "jitter": 0.0005}})
        case "gain":
            return Planted(kp=between(0.5, 0.7) if rng.random() < 0.5 else between(1.4, 1.6))
        case "friction":
            return Planted(preset={"joint": {"friction_add": between(0.03, 0.07) * limit}})
        case "damping":
            return Planted(preset={"joint": {"damping_add": between(0.03, 0.07) * limit}})
        case "weak motors":
            if seed % 2:
                share = between(0.25, 0.35) if walking else between(0.08, 0.15)
                return Planted(preset={"motor": {"torque_limit": share, "no_load_speed": 2.0}})
            return Planted(preset={"joint": {"torque_scale": between(0.45, 0.65)}})
        case "heat" if walking:
            heat = {"rise": between(800.0, 1200.0), "time_constant": between(8.0, 12.0), "derate_from": 30.0,
                    "derate_to": 45.0, "derate_floor": between(0.15, 0.25)}  # fmt: skip
            return Planted(preset={"heat": heat})
        case "heat":
            heat = {"rise": 5e3, "time_constant": between(3.0, 5.0), "derate_from": 28.0, "derate_to": 36.0,
                    "derate_floor": between(0.03, 0.06)}  # fmt: skip
            return Planted(preset={"heat": heat})
        case "hysteresis":
            bend = {"kind": "lugre", "bristle": between(0.04, 0.08), "bristle_damping": 0.0}
            return Planted(preset={"joint": {"friction_add": between(0.04, 0.08) * limit}, "friction": bend})
        case "wrong rate":
            return Planted(clock=between(1.2, 1.5) if rng.random() < 0.5 else between(0.65, 0.8))
        case "payload":
            return Planted(preset={"payload": {"mass": between(0.25, 0.45), "offset": between(-0.03, 0.03)}})
        case "ground friction":
            return Planted(preset={"ground": {"friction": between(0.12, 0.2)}})
        case "normaliser":
            return Planted(unscaled=int(rng.integers(8)))
        case "state estimate":
            tilt = either(0.15, 0.25), either(0.05, 0.1)
            return Planted(tilt_rad=tilt if rng.random() < 0.5 else tilt[::-1])
    return Planted()


def twin_of(robot: Robot, planted: Planted, seed: int, *, free: bool) -> Twin:
    """A sound twin with the planted sections."""
    sections = tomllib.loads(PRESET.read_text())
    for name, values in planted.preset.items():
        sections[name] = sections.get(name, {}) | values
    lines = [f"schema = {sections.pop('schema')}", f'description = "{sections.pop("description")}"']
    for name, values in sections.items():
        lines += [f"[{name}]", *(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in values.items())]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "planted.toml"
        file.write_text("\n".join(lines) + "\n")
        base = "free" if free else "fixed"
        return Twin(robot, TwinCfg(preset=str(file), seed=seed, base=base, command_hz=RATE))


class Rows:
    """A twin behind planted wiring, and the log as a program on the wrong side of it would write it."""

    def __init__(self, twin: Twin, planted: Planted, seconds: float, *, walking: bool = False) -> None:
        self.twin, self.planted, self.seconds, self.walking = twin, planted, seconds, walking
        self.spec = twin.robot.spec
        n = self.spec.njoint
        self.bias = np.array(planted.bias or np.zeros(n))
        self.sign = np.array(planted.sign or np.ones(n))
        self.order = np.array(planted.order or range(n))
        self.rows: dict[str, list[np.ndarray]] = {}
        self.cold, self.limited = twin.plant.motors.available.copy(), 0

    @property
    def hot_share(self) -> float:
        """Share of the rows in which a motor that heat has weakened gives all that it still has."""
        return self.limited / max(1, len(self.rows.get("joint_pos", ())))

    def state(self) -> RobotState:
        """A reading through zeros and drift."""
        state = self.twin.state()
        done = min(1.0, self.twin.time_s / self.seconds)
        quat = state.imu_quat
        if quat is not None and any(self.planted.tilt_rad):
            tilt = Rotation.from_euler("xy", np.array(self.planted.tilt_rad) * done)
            quat = (Rotation.from_quat(quat, scalar_first=True) * tilt).as_quat(scalar_first=True)
        return replace(state, joint_pos=state.joint_pos + self.bias, imu_quat=quat)

    def step(self, state: RobotState, target: np.ndarray, kp: np.ndarray, kd: np.ndarray) -> None:
        """Log the state and the command, then send it; a robot that walks is wired well, and its log is not."""
        pos, vel = state.joint_pos, state.joint_vel
        if self.planted.states_too:
            pos, vel = (self.sign * values[self.order] for values in (pos, vel))
        zero = np.zeros_like(target)
        sent, told = np.zeros_like(target), target
        if self.walking:
            sent, told = target.copy(), self.sign * target[self.order]
        else:
            sent[self.order] = self.sign * target  # column k goes to joint order[k]
        found = {"joint_pos": pos, "joint_vel": vel, "joint_torque": state.joint_torque,
                 "joint_temperature": state.joint_temperature, "imu_gyro": state.imu_gyro, "imu_acc": state.imu_acc,
                 "imu_quat": state.imu_quat, "target_pos": told, "target_kp": kp, "target_kd": kd}  # fmt: skip
        for name, value in found.items():
            if value is not None:
                self.rows.setdefault(name, []).append(np.array(value))
        sent = np.clip(sent - self.bias, self.spec.position_low, self.spec.position_high)
        self.twin.command(np.stack([sent, zero, self.planted.kp * kp, kd, zero]))
        self.twin.period()
        left = self.twin.plant.motors.available
        self.limited += bool(((left < _HOT * self.cold) & (np.abs(self.twin.plant.force) >= _ALL * left)).any())

    def log(self) -> Log:
        time = np.arange(len(self.rows["joint_pos"])) / RATE * self.planted.clock
        signals = {name: np.stack(values) for name, values in self.rows.items()}
        return Log(time=time, joint_names=self.spec.joint_names, signals=signals, meta={"robot": self.spec.name})


def air_log(name: str, cause: str, seed: int, seconds: float = 10.0) -> Log:
    """A robot held in the air, moved by a multisine."""
    robot = load_robot(name)
    planted = plant(cause, robot, seed)
    rows = Rows(twin_of(robot, planted, seed, free=False), planted, seconds)
    plan = excite(robot.spec, ExcitationCfg(seconds=seconds, rate_hz=RATE, seed=seed))
    kp, kd = np.array(robot.spec.kp), np.array(robot.spec.kd)
    for target in np.concatenate([np.repeat(plan.target_pos[:1], 100, axis=0), plan.target_pos]):
        rows.step(rows.state(), target, kp, kd)
    log = rows.log()
    return log.window(100, len(log))


def fed(bundle: PolicyBundle, planted: Planted) -> PolicyBundle:
    """The bundle as a program runs it that forgets the scale of one term of the observation."""
    seen = bundle.passport.policy.observation
    scaled = [k for k, term in enumerate(seen.terms) if np.any(np.array(term.scale) != 1.0)]
    if planted.unscaled is None:
        return bundle
    if not scaled:
        raise SystemExit("this bundle has no scales to forget")
    forgotten = scaled[planted.unscaled % len(scaled)]
    terms = tuple(
        msgspec.structs.replace(one, scale=1.0) if k == forgotten else one for k, one in enumerate(seen.terms)
    )
    policy = msgspec.structs.replace(bundle.passport.policy, observation=msgspec.structs.replace(seen, terms=terms))
    return replace(bundle, passport=msgspec.structs.replace(bundle.passport, policy=policy))


def walk_log(name: str, bundle: PolicyBundle, cause: str, seed: int, seconds: float = 10.0) -> Log:
    """A robot that walks, with a cause that does something."""
    robot = load_robot(name)
    for draw in range(_DRAWS):
        rows = _walk(robot, bundle, plant(cause, robot, seed, walking=True, draw=draw), seed, seconds)
        if cause != "heat" or rows.hot_share >= HOT_SHARE:
            break
    log = rows.log()
    return log.window(_STAND // 2, len(log))


def _walk(robot: Robot, bundle: PolicyBundle, planted: Planted, seed: int, seconds: float) -> Rows:
    """Stand up and walk under a policy, commands that change, until the end or a fall."""
    rows = Rows(twin_of(robot, planted, seed, free=True), planted, seconds, walking=True)
    # a program that forgets a scale is not ours, and does not bound the change of targets
    cfg = None if planted.unscaled is None else ControlCfg(target_step=np.inf)
    control, rng = Controller(fed(bundle, planted), robot.spec.joint_names, cfg), np.random.default_rng([seed, 72])
    per, pose = round(RATE / control.control_hz), control.default_pose
    start = np.array(rows.state().joint_pos)
    for k in range(_STAND):
        rows.step(rows.state(), start + min(1.0, k / (0.6 * _STAND)) * (pose - start), control.kp, control.kd)
    control.restart(pose)
    command = np.zeros(3, np.float32)
    for k in range(round(seconds * control.control_hz)):
        if k % round(_CHANGE_S * control.control_hz) == 0:
            command = rng.uniform((-0.2, -0.3, -0.6), (0.7, 0.3, 0.6)).astype(np.float32)
        state = rows.state()
        assert state.imu_quat is not None
        if -gravity_in_body(np.asarray(state.imu_quat)[None])[0, 2] < np.cos(_FALLEN_RAD):
            break
        target = control.step(state, command).target
        for _ in range(per):
            rows.step(rows.state(), target, control.kp, control.kd)
    return rows
