"""What a wiggle test does, in order: come to rest, hold, wiggle joint by joint, then sweep in several poses.

Whatever is found wrong ends the programme at the next point at which moving on would not be safe: a robot whose
commands and readings disagree is not swept.
"""

from __future__ import annotations

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.deploy.wiggle.analysis.answers import answer_findings
from trueup.deploy.wiggle.analysis.limb_model import LimbModel
from trueup.deploy.wiggle.motion.moves import Motion, Moves
from trueup.deploy.wiggle.motion.sweeps import sweep_about, sweep_to_stops
from trueup.robot.spec import RobotSpec

POSES = 3
# which of two poses a limb takes in each of the three: every two limbs differ in two of them, so that joints of
# different limbs carry different loads
_CODES = ((0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1))
_AWAY_RAD, _AWAY_SHARE = 1.1, 0.48  # second pose: distance from the default, at most this share of the range
_REACH_RAD = 0.5  # of sweeps about a pose


def wiggle_program(moves: Moves, limbs: LimbModel | None) -> Motion:
    """The whole test; results are in `moves.trace`."""
    spec, trace = moves.spec, moves.trace
    yield from moves.limp()
    trace.rest = moves.state.joint_pos.copy()
    yield from moves.hold()
    if trace.departed is not None:
        yield from moves.limp()
        for j in np.argsort(-np.abs(trace.departed)):
            yield from moves.pulse(int(j))
            if answer_findings(spec, trace, settled=False):
                return
        return
    for j in range(spec.njoint):
        yield from moves.wiggle(j)
    if not moves.cfg.stops or answer_findings(spec, trace):
        return
    poses = sweep_poses(spec, limbs)
    for k, pose in enumerate(poses):
        yield from moves.move(pose)
        for group in sweep_groups(spec, limbs, full=k == 0):
            if k == 0:
                yield from sweep_to_stops(moves, group)
            else:
                yield from sweep_about(moves, group, _REACH_RAD)
    yield from moves.move(trace.rest)


def sweep_poses(spec: RobotSpec, limbs: LimbModel | None) -> list[FloatArray]:
    """Poses in which joints are swept: each joint at its default or towards its farther limit, by the limb's code.

    The first joint of each limb stays at its default where there are several limbs: hips that turn inward would let
    the legs meet.
    """
    low, high, default = spec.position_low, spec.position_high, spec.default_pose
    farther = np.where(high - default > default - low, 1.0, -1.0)
    away = farther * np.minimum(_AWAY_RAD, _AWAY_SHARE * (high - low))
    of = (0,) * spec.njoint if limbs is None else limbs.limbs
    several = len(set(of)) > 1
    poses: list[FloatArray] = []
    for k in range(POSES):
        code = np.array([float(_CODES[limb % len(_CODES)][k]) for limb in of])
        if several:
            code[[of.index(limb) for limb in set(of)]] = 0.0
        pose = default + code * away
        if not any(np.array_equal(pose, other) for other in poses):
            poses.append(pose)
    return poses


def sweep_groups(spec: RobotSpec, limbs: LimbModel | None, *, full: bool) -> list[list[int]]:
    """Joints that are swept at the same time.

    Four-legged robots: like joints of diagonal legs through their whole range, like joints of all legs about a pose.
    Others: one joint at a time, since nothing is known here about what touches what.
    """
    of = () if limbs is None else limbs.limbs
    legs = [[j for j in range(spec.njoint) if of[j] == limb] for limb in dict.fromkeys(of)]
    if len(legs) != 4 or len(spec.feet) != 4 or len({len(leg) for leg in legs}) != 1:
        return [[j] for j in range(spec.njoint)]
    together = ((0, 3), (1, 2)) if full else ((0, 1, 2, 3),)
    return [[legs[leg][k] for leg in group] for group in together for k in range(len(legs[0]))]
