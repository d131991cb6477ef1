"""Golden sequences: raw readings -> observations -> actions -> joint targets -> servo torques, kept with the policy.

They bind the passport to behaviour: `respond` computes the whole chain from a passport, a network and readings, when a
bundle is written and whenever it is opened. Readings are kept in alphabetical order of joints, so that a passport with
another order, sign, scale, pose, history, gain, limit or rate no longer gives the numbers that were kept.

walk     ordinary readings for every control step, a restart of one row among them; the network acts
extreme  readings and actions far outside every limit, to reach all clips; actions are given, without the network
random   observations drawn at random, and the network's actions
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.documents import parse_npz
from trueup.core.errors import TrueupError
from trueup.policy.action import ActionMap, JointOrder
from trueup.policy.bundle.passport import Passport
from trueup.policy.graph.net import GraphNet
from trueup.policy.normalizer import Float32
from trueup.policy.observation import ObservationBuilder
from trueup.policy.reading import Reading

Arrays = dict[str, NDArray[np.generic]]
TOLERANCE = 1e-5  # of every number, absolute, and relative above one
_ROWS, _STEPS, _RANDOM = 2, 12, 64
_MAX_STEPS, _MAX_ROWS, _MAX_RANDOM, _MAX_UNPACKED = 200, 8, 1000, 64_000_000
_MOST_S = 10.0  # of processor time for each of them; a policy's step takes far less than a millisecond
_FAR = 1e3


def make_golden(passport: Passport, net: Callable[[int], GraphNet], steps: int = 0) -> Arrays:
    """Draw readings and compute what follows; `net` makes the network for a number of rows, `steps` is its memory."""
    rng = np.random.default_rng(0)
    length = min(max(_STEPS, steps + passport.policy.observation.history + 4), _MAX_STEPS)
    out: Arrays = {"joint_names": np.array(sorted(passport.joint_names))}
    out |= {f"walk/{name}": values for name, values in _stimulus(passport, rng, length, 1.0).items()}
    out |= {f"extreme/{name}": values for name, values in _stimulus(passport, rng, _STEPS, _FAR).items()}
    naction, nactor = len(passport.policy.action.controlled_joints), passport.policy.observation.nactor
    out["extreme/given"] = (_FAR * rng.uniform(-1.0, 1.0, (_STEPS, _ROWS, naction))).astype(np.float32)
    out["random/obs"] = rng.normal(0.0, 1.0, (_RANDOM, nactor)).astype(np.float32)
    return out | respond(passport, net, out)


def respond(passport: Passport, net: Callable[[int], GraphNet], golden: Mapping[str, NDArray[np.generic]]) -> Arrays:
    """Response of passport and network to the golden readings, under the names of a golden file."""
    walker, single = _Timed(net(golden["walk/restart"].shape[1])), _Timed(net(1))
    out = {f"walk/{k}": v for k, v in _chain(passport, _part(golden, "walk"), walker, walker.net.restart).items()}
    given = iter(np.asarray(golden["extreme/given"], np.float32))
    extreme = _part(golden, "extreme")
    out |= {f"extreme/{k}": v for k, v in _chain(passport, extreme, lambda obs: next(given), lambda rows: None).items()}
    actions = []
    for obs in np.asarray(golden["random/obs"], np.float32):
        single.net.restart(np.arange(1))
        actions.append(single(obs[None])[0])
    return out | {"random/action": np.array(actions), "physics_dt": np.array(1.0 / passport.physics_hz)}


class _Timed:
    """A network that may take `_MOST_S` in all."""

    def __init__(self, net: GraphNet) -> None:
        self.net, self._until = net, time.process_time() + _MOST_S

    def __call__(self, obs: Float32) -> Float32:
        if time.process_time() > self._until:
            raise TrueupError(
                f"takes more than {_MOST_S:g} s for a few steps: too slow for a robot", file=self.net.file
            )
        return self.net(obs)


def check_golden(
    passport: Passport, net: Callable[[int], GraphNet], golden: Mapping[str, NDArray[np.generic]], file: Path
) -> float:
    """Compute the chain again and refuse differences by name; returns the largest one."""
    _check_shapes(passport, golden, file)
    try:
        found = respond(passport, net, golden)
    except (ValueError, IndexError, KeyError) as error:
        raise TrueupError(f"passport and golden sequences do not fit each other: {error}", file=file) from None
    worst, wrong = 0.0, []
    for name, values in found.items():
        kept = golden.get(name)
        if kept is None or kept.shape != values.shape:
            raise TrueupError(f"lacks {name!r}, or has it in another shape than the passport", file=file)
        worst = max(worst, distance(values, kept))
        steps = [distance(*pair) for pair in zip(np.atleast_1d(values), np.atleast_1d(kept), strict=True)]
        wrong += [(k, step, name) for k, step in enumerate(steps) if not step <= TOLERANCE][:1]
    if wrong:
        _, difference, name = min(wrong, key=lambda entry: entry[0])  # what comes first explains what follows
        raise TrueupError(
            f"passport and network no longer give the golden {name!r}: they differ by {difference:.3g}, allowed is "
            f"{TOLERANCE:g}; the passport or the network was changed after it was made",
            file=file,
            place=name,
        )
    return worst


def distance(values: NDArray[np.generic], kept: NDArray[np.generic]) -> float:
    """Largest difference, absolute or, above one, relative."""
    found, other = (np.asarray(part, np.float64) for part in (values, kept))
    return float((np.abs(found - other) / np.maximum(1.0, np.abs(other))).max(initial=0.0))


def action_distance(actions: NDArray[np.generic], others: NDArray[np.generic]) -> float:
    """Largest difference of a network's outputs in two engines, absolute or, above one, as a share of the largest.

    Each engine rounds float32 sums in its own order: hidden values of some hundreds make a small output as uncertain as
    a large one, so one size is taken for all.
    """
    one, other = (np.asarray(part, np.float64) for part in (actions, others))
    return float(np.abs(one - other).max(initial=0.0) / np.abs(other).max(initial=1.0))


def encode_golden(golden: Arrays) -> bytes:
    """As NPZ, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, **golden)  # type: ignore[arg-type]
    return buffer.getvalue()


def decode_golden(data: bytes, file: Path) -> Arrays:
    """Read NPZ bytes whose unpacked size is bounded; numbers are finite."""
    arrays = parse_npz(data, "file of golden sequences", file, _MAX_UNPACKED)
    for name, values in arrays.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise TrueupError(f"has numbers that are not finite in {name!r}", file=file)
    return arrays


def _stimulus(passport: Passport, rng: np.random.Generator, steps: int, far: float) -> Arrays:
    """Readings of `_ROWS` robots over steps, joints sorted by name; `far` times the ordinary."""
    spec, shape = passport.policy, (steps, _ROWS)
    order = JointOrder(spec.action.joint_names, tuple(sorted(spec.action.joint_names)))
    pose = order.to_robot(np.array(spec.action.default_pose))
    down = rng.normal((0.0, 0.0, -1.0), 0.3, (*shape, 3))
    low, high = np.array(passport.goal.low), np.array(passport.goal.high)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    restart = np.zeros(shape, bool)
    restart[0], restart[steps // 2, 1:] = True, True
    out: Arrays = {
        "joint_pos": pose + far * rng.uniform(-0.4, 0.4, (*shape, len(pose))),
        "joint_vel": far * rng.uniform(-4.0, 4.0, (*shape, len(pose))),
        "gyro": far * rng.uniform(-1.0, 1.0, (*shape, 3)),
        "gravity": far * down / np.linalg.norm(down, axis=-1, keepdims=True),
        "asked": (middle + far * half * rng.uniform(-1.0, 1.0, (*shape, len(low)))).astype(np.float32),
        "restart": restart,
    }
    for name, width in spec.observation.widths.items():
        out[f"other/{name}"] = far * rng.uniform(-1.0, 1.0, (*shape, width))
    return out


def _chain(
    passport: Passport,
    given: Mapping[str, NDArray[np.generic]],
    act: Callable[[Float32], Float32],
    forget: Callable[[NDArray[np.intp]], None],
) -> Arrays:
    """Run builder, policy, action map and servo over given readings."""
    spec = passport.policy
    order = JointOrder(spec.action.joint_names, tuple(sorted(spec.action.joint_names)))
    steps, rows = given["restart"].shape
    builder, mapping = ObservationBuilder(spec.observation, rows), ActionMap(spec.action)
    seen = np.zeros((rows, len(spec.action.controlled_joints)), np.float32)
    target = np.zeros((rows, len(spec.action.joint_names)))
    kept: dict[str, list[NDArray[np.generic]]] = {"obs": [], "action": [], "target": [], "torque": []}
    for k in range(steps):
        reading, command = _reading(given, k, order), np.asarray(given["asked"][k], np.float32)
        obs, fresh = builder.step(reading, command, seen).copy(), np.flatnonzero(given["restart"][k])
        if len(fresh):
            forget(fresh)
            seen[fresh], target[fresh] = 0.0, reading.joint_pos[fresh]
            obs[fresh] = builder.restart(_rows(reading, fresh), command[fresh], seen[fresh], fresh)
        action = np.ascontiguousarray(act(obs), np.float32)
        target, seen = mapping.target(action, target, builder.command, builder.phase), mapping.observed(action).copy()
        torque = np.array(spec.kp) * (target - reading.joint_pos) - np.array(spec.kd) * reading.joint_vel
        limit = np.array(passport.torque_limit)
        torque = order.to_robot(np.clip(torque, -limit, limit))
        for name, values in (("obs", obs), ("action", action), ("target", order.to_robot(target)), ("torque", torque)):
            kept[name].append(values.copy())  # the target may be a view, which a restart would overwrite
    return {name: np.array(values) for name, values in kept.items()} | {"time": np.arange(steps) / spec.control_hz}


def _reading(given: Mapping[str, NDArray[np.generic]], k: int, order: JointOrder) -> Reading:
    others = {name[6:]: np.asarray(values[k], np.float64) for name, values in given.items() if name[:6] == "other/"}
    joint_pos, joint_vel, gyro, gravity = (
        np.asarray(given[name][k], np.float64) for name in ("joint_pos", "joint_vel", "gyro", "gravity")
    )
    return Reading(
        joint_pos=order.to_policy(joint_pos),
        joint_vel=order.to_policy(joint_vel),
        gyro=gyro,
        gravity=gravity,
        others=others,
    )


def _rows(reading: Reading, rows: NDArray[np.intp]) -> Reading:
    assert reading.gyro is not None
    assert reading.gravity is not None
    return Reading(
        joint_pos=reading.joint_pos[rows],
        joint_vel=reading.joint_vel[rows],
        gyro=reading.gyro[rows],
        gravity=reading.gravity[rows],
        others={name: values[rows] for name, values in reading.others.items()},
    )


def _part(golden: Mapping[str, NDArray[np.generic]], name: str) -> Arrays:
    return {key[len(name) + 1 :]: values for key, values in golden.items() if key.startswith(f"{name}/")}


def _check_shapes(passport: Passport, golden: Mapping[str, NDArray[np.generic]], file: Path) -> None:
    """The readings are as many as the passport's joints, commands and signals need."""
    spec = passport.policy
    names = golden.get("joint_names")
    if names is None or tuple(str(name) for name in names.ravel()) != tuple(sorted(passport.joint_names)):
        raise TrueupError("is of other joints than the passport", file=file)
    widths = {"joint_pos": len(passport.joint_names), "joint_vel": len(passport.joint_names), "gyro": 3, "gravity": 3}
    widths |= {"asked": spec.observation.ncommand}
    widths |= {f"other/{name}": width for name, width in spec.observation.widths.items()}
    for part in ("walk", "extreme"):
        restart = golden.get(f"{part}/restart", np.zeros(0))
        fits = (
            restart.ndim == 2 and restart.dtype == bool and 1 <= len(restart) <= _MAX_STEPS and restart.shape[1] <= 64
        )
        for name, width in widths.items():
            values = golden.get(f"{part}/{name}", np.zeros(0))
            fits = fits and values.shape == (*restart.shape, width) and values.dtype.kind == "f"
        if not fits:
            raise TrueupError(f"its readings {part!r} do not fit the passport", file=file)
    given, random = golden.get("extreme/given", np.zeros(0)), golden.get("random/obs", np.zeros(0))
    if given.shape != (*golden["extreme/restart"].shape, len(spec.action.controlled_joints)) or random.ndim != 2:
        raise TrueupError("its actions do not fit the passport", file=file)
    if random.shape[1] != spec.observation.nactor or len(random) > _MAX_RANDOM:
        raise TrueupError("its observations do not fit the passport", file=file)
