"""Bundles of a robot with three joints and small random networks, made without a simulator."""

import itertools
import json
from pathlib import Path

import numpy as np

from trueup.policy.action import ActionSpec
from trueup.policy.bundle.bundle import PolicyBundle, write_bundle
from trueup.policy.bundle.manifest import SPEC, read_files, write_files
from trueup.policy.bundle.passport import GoalFacts, Passport, PolicyOrigin, RobotIdentity, TrainingRange, term_facts
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.mlp import PolicySpec
from trueup.policy.net import NetWiring, PolicyNet
from trueup.policy.normalizer import Normalizer
from trueup.policy.observation import ObservationSpec, Term

JOINTS = ("hip", "knee", "ankle")  # not in alphabetical order
POSE = (0.1, -0.4, 0.3)
OBSERVATION = ObservationSpec(
    joint_names=JOINTS,
    default_pose=POSE,
    terms=(
        Term("gyro", 0.25, ((-2.0, 2.0),)),
        Term("gravity"),
        Term("command", (2.0, 2.0, 0.25)),
        Term("joint_pos"),
        Term("joint_vel", 0.05),
        Term("action"),
    ),
    ncommand=3,
    naction=3,
    history=2,
)
ACTION = ActionSpec(
    joint_names=JOINTS,
    default_pose=POSE,
    low=(-1.0,) * 3,
    high=(1.0,) * 3,
    controlled_joints=JOINTS,
    scale=(0.25,) * 3,
    clip=5.0,
)


class RobotFacts:
    """What a robot says of itself, in an order of its own; attributes may be replaced."""

    name = "toy"
    joint_names = ("ankle", "hip", "knee")
    control_hz = 50.0

    def __init__(self) -> None:
        self.position_low, self.position_high = np.full(3, -1.5), np.full(3, 1.5)
        self.default_pose = np.array([0.3, 0.1, -0.4])
        self.torque_limit = np.array([10.0, 20.0, 20.0])
        self.kp, self.kd = np.full(3, 20.0), np.full(3, 0.5)


def make_net(kind: str = "plain", *, squash: float = 0.0, seed: int = 0, nobs: int | None = None) -> PolicyNet:
    """A network with a normaliser; students remember four steps."""
    nobs, naction, steps = OBSERVATION.nactor if nobs is None else nobs, 3, 0 if kind == "plain" else 4
    rng, past = np.random.default_rng(seed), steps * (nobs + naction)
    normalizer = Normalizer(nobs)
    normalizer.update(rng.normal(0.3, 1.5, (200, nobs)))

    def layers(*sizes: int) -> tuple:
        return tuple(
            (rng.normal(0, n**-0.5, (m, n)).astype(np.float32), rng.normal(0, 0.2, m).astype(np.float32))
            for n, m in itertools.pairwise(sizes)
        )

    actor = layers({"plain": nobs, "latent": nobs + 2, "action": past}[kind], 16, 8, naction)
    encoder = layers(past, 8, 2) if kind == "latent" else ()
    spec = NetWiring(kind=kind, steps=steps, squash=squash)
    return PolicyNet(spec=spec, actor=actor, encoder=encoder, normalizer=normalizer)


def make_passport(net: PolicyNet | None = None, **changes: object) -> Passport:
    """The toy's passport; parts may be replaced."""
    spec = PolicySpec(
        task="walk",
        robot="toy",
        control_hz=50.0,
        kp=(20.0, 20.0, 15.0),
        kd=(0.5, 0.5, 0.4),
        observation=OBSERVATION,
        action=ACTION,
        net=NetWiring() if net is None else net.spec,
    )
    ones = (1.0,) * OBSERVATION.nactor
    zeros = (0.0,) * OBSERVATION.nactor
    parts = {
        "policy": spec,
        "robot": RobotIdentity(name="toy", model_sha256="0" * 64),
        "signs": (1, 1, 1),
        "torque_limit": (20.0, 20.0, 10.0),
        "physics_hz": 200.0,
        "terms": term_facts(OBSERVATION),
        "goal": GoalFacts(
            columns=("forward", "sideways", "turn"), units=("m/s", "m/s", "rad/s"), low=(-1, -0.5, -1), high=(1, 0.5, 1)
        ),
        "ranges": TrainingRange(
            low=zeros, high=ones, minimum=zeros, maximum=ones, mean=zeros, std=ones, rows=10, seconds=1.0
        ),
        "origin": PolicyOrigin(format="trueup", run="toy", files={"config.json": "1" * 64}),
    }
    return Passport(**(parts | changes))


def make_bundle(path: Path, kind: str = "plain", **changes: object) -> PolicyBundle:
    """A whole bundle on disk."""
    net = make_net(kind)
    return write_bundle(path, make_passport(net, **changes), policy_onnx(net))


def edit_spec(path: Path, change, *, sign: bool) -> None:
    """Change spec.json on disk; `sign`: make every hash right again."""
    spec = json.loads((path / SPEC).read_text())
    manifest, files, _ = read_files(path)
    change(spec)
    text = json.dumps(spec, indent=1).encode()
    if sign:
        write_files(path, files | {SPEC: text}, manifest.opset, manifest.operators)
    else:
        (path / SPEC).write_bytes(text)
