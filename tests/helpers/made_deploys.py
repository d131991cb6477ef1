"""Bundles, robots and drivers for deploy: a toy of three joints in this process, and a go2 that stands."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
from fake_driver import FakeDriver
from made_bundles import JOINTS, OBSERVATION, make_net, make_passport

from trueup.deploy.session.recording import RowsHeader, column_widths
from trueup.hardware.driver import Command, RobotState
from trueup.policy.action import ActionSpec, JointOrder
from trueup.policy.bundle.bundle import PolicyBundle, write_bundle
from trueup.policy.bundle.passport import GoalFacts, Passport, PolicyOrigin, RobotIdentity, TrainingRange, term_facts
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.mlp import PolicySpec
from trueup.policy.net import NetWiring, PolicyNet
from trueup.policy.normalizer import Normalizer
from trueup.policy.observation import ObservationSpec, Term
from trueup.robot.load import Robot, load_robot
from trueup.robot.spec import BaseSpec, JointSpec, RobotSpec

# of a recording of the toy
HEADER = RowsHeader(
    bundle="b", bundle_hash="0" * 64, robot="toy", joint_names=("ankle", "hip", "knee"), control_hz=50.0, has_imu=True,
    settings={"smoothing": 1.0}, columns=column_widths(3, 3, 36, 3),
)  # fmt: skip

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])


def toy_spec(names: tuple[str, ...] = ("ankle", "hip", "knee")) -> RobotSpec:
    """The robot of `made_bundles`, its joints in an order of its own."""
    pose = {"hip": 0.1, "knee": -0.4, "ankle": 0.3}
    torque = {"hip": 20.0, "knee": 20.0, "ankle": 10.0}
    joints = tuple(
        JointSpec(
            name=name, position=(-1.5, 1.5), velocity=20.0, torque=torque[name], kp=20.0, kd=0.5, default=pose[name]
        )
        for name in names
    )
    base = BaseSpec(body="base", floating=True)
    return RobotSpec(
        schema=1, name="toy", model="toy.xml", control_hz=50.0, physics_hz=200.0, base=base, joints=joints, imu="imu"
    )


def toy_robot(folder: Path, spec: RobotSpec | None = None) -> Robot:
    """The toy with a model file whose hash the made passports do not have."""
    model = folder / "toy.xml"
    model.write_text("<mujoco/>")
    return Robot(spec=spec or toy_spec(), model_path=model)


def wide_ranges(nactor: int, reach: float = 10.0) -> TrainingRange:
    """A training range that ordinary observations lie in."""
    low, high = (-reach,) * nactor, (reach,) * nactor
    return TrainingRange(
        low=low, high=high, minimum=low, maximum=high, mean=(0.0,) * nactor, std=(1.0,) * nactor, rows=10, seconds=1.0
    )


def toy_bundle(path: Path, kind: str = "plain", **changes: object) -> PolicyBundle:
    """The toy's bundle with wide training ranges."""
    net = make_net(kind)
    passport = make_passport(net, **({"ranges": wide_ranges(OBSERVATION.nactor)} | changes))
    return write_bundle(path, passport, policy_onnx(net))


def toy_state(k: int = 0, seed: int = 0, names: tuple[str, ...] = ("ankle", "hip", "knee"), **changes) -> RobotState:
    """A state of the toy, drawn by (seed, k); joints in the order of `names`."""
    rng = np.random.default_rng([seed, k])
    drawn = dict(zip(JOINTS, rng.normal(0.0, 0.3, (3, 2)), strict=True))
    quat = rng.normal((1.0, 0.0, 0.0, 0.0), 0.1)
    parts = {
        "sequence": k + 1,
        "time_s": 0.02 * k,
        "joint_pos": np.array([drawn[name][0] for name in names]),
        "joint_vel": np.array([drawn[name][1] for name in names]),
        "joint_torque": np.zeros(3),
        "joint_temperature": np.full(3, 35.0),
        "voltage": 24.0,
        "imu_quat": quat / np.linalg.norm(quat),
        "imu_gyro": rng.normal(0.0, 0.3, 3),
        "imu_acc": np.array([0.0, 0.0, 9.81]),
    }
    return RobotState(**(parts | changes))


@dataclass
class ToyDriver(FakeDriver):
    """FakeDriver with an upright IMU, at the toy's control rate."""

    rate_hz: float = 50.0
    command_hz: float = 50.0
    heard: list[Command] = field(default_factory=list)

    def read(self) -> RobotState:
        state = super().read()
        imu = {"imu_quat": UPRIGHT, "imu_gyro": np.zeros(3), "imu_acc": np.array([0.0, 0.0, 9.81])}
        spoiled = {name: value for name in imu if (value := getattr(state, name)) is not None}
        return replace(state, **(imu | spoiled))


def standing_bundle(
    path: Path,
    robot: str = "go2",
    *,
    swing: float = 0.0,
    noise: float = 0.0,
    robot_identity: RobotIdentity | None = None,
    **changes: object,
) -> PolicyBundle:
    """A bundle of a built-in robot whose policy holds the default pose.

    swing  rad that targets move by for each m/s that is asked forward
    noise  size of random weights, by which it answers to everything it sees
    """
    spec = load_robot(robot).spec
    order = tuple(sorted(spec.joint_names))
    pose = JointOrder(order, spec.joint_names).to_policy(spec.default_pose)
    seen = ObservationSpec(
        joint_names=order,
        default_pose=tuple(pose.tolist()),
        terms=(Term("gyro", 0.25), Term("gravity"), Term("command"), Term("joint_pos"), Term("joint_vel", 0.05),
               Term("action")),
        ncommand=3,
        naction=len(order),
    )  # fmt: skip
    action = ActionSpec(
        joint_names=order,
        default_pose=tuple(pose.tolist()),
        controlled_joints=order,
        scale=(0.25,) * len(order),
        clip=10.0,
    )
    weight = np.zeros((len(order), seen.nactor), np.float32)
    weight[:, 6] = 4.0 * swing
    weight += noise * np.random.default_rng(0).normal(size=weight.shape).astype(np.float32)
    net = PolicyNet(
        spec=NetWiring(), actor=((weight, np.zeros(len(order), np.float32)),), normalizer=_plain(seen.nactor)
    )
    policy = PolicySpec(
        task="stand", robot=robot, control_hz=50.0, kp=(40.0,) * len(order), kd=(1.0,) * len(order), observation=seen,
        action=action,
    )  # fmt: skip
    loaded = load_robot(robot)
    limit = JointOrder(order, spec.joint_names).to_policy(spec.torque_limit)
    parts: dict[str, object] = {
        "policy": policy,
        "robot": robot_identity or RobotIdentity(name=robot, model_sha256=loaded.model_sha256),
        "signs": (1,) * len(order),
        "torque_limit": tuple(limit.tolist()),
        "physics_hz": 200.0,
        "terms": term_facts(seen),
        "goal": GoalFacts(
            columns=("forward", "sideways", "turn"), units=("m/s", "m/s", "rad/s"), low=(-1, -0.5, -1), high=(1, 0.5, 1)
        ),
        "ranges": wide_ranges(seen.nactor, 3.0),
        "origin": PolicyOrigin(format="trueup", run="stand"),
    }
    return write_bundle(path, Passport(**(parts | changes)), policy_onnx(net))


def _plain(size: int) -> Normalizer:
    """A normaliser that (nearly) passes its input on."""
    out = Normalizer(size)
    out.mean, out.var, out.count = np.zeros(size), np.full(size, 0.99**2), 1.0
    return out


def changed(struct, **parts):
    """A frozen struct with parts replaced."""
    return msgspec.structs.replace(struct, **parts)
