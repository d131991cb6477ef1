"""Recordings: whether they fit the robot and its policy, and whether they agree with each other.

A number that mends one motion and spoils another makes up for what the model lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.files import Logs
from trueup.data.log import Log
from trueup.data.resample import at_rate, common_rate, is_uniform, rate_of, resample
from trueup.gap.causes.search import Tested
from trueup.gap.windows import LogWindows
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.robot.load import Robot


def names_of(logs: Logs) -> tuple[str, ...]:
    """Files among the logs."""
    given = [logs] if isinstance(logs, Log | str | Path) else logs
    return tuple(str(one) for one in given if not isinstance(one, Log))


def robot_of(log: Log, bundle: PolicyBundle | None) -> str:
    """The robot that a log names, or its policy."""
    named = log.meta.get("robot")
    if isinstance(named, str):
        return named
    if bundle is None:
        raise TrueupError("the log does not say of which robot it is: name it with --robot")
    return bundle.passport.robot.name


def check_bundle(bundle: PolicyBundle, robot: Robot) -> None:
    """A policy of another robot did not run on this one."""
    moved = bundle.passport.policy.action.joint_names
    if set(moved) - set(robot.spec.joint_names):
        raise TrueupError(
            f"the bundle is of robot {bundle.passport.robot.name!r}, the log of {robot.spec.name!r}: give the bundle "
            "of the policy that ran, or none",
            file=bundle.path,
        )


def in_order(robot: Robot, logs: Sequence[Log]) -> list[Log]:
    """Logs in the spec's joint order; one of another robot is refused."""
    for log in logs:
        lacking = [name for name in robot.spec.joint_names if name not in log.joint_names]
        if lacking:
            named = f"the log, of robot {log.meta['robot']!r}," if "robot" in log.meta else "the log"
            raise TrueupError(
                f"{named} has {len(log.joint_names)} joints ({', '.join(log.joint_names[:3])}, ...); robot "
                f"{robot.spec.name!r} has {lacking[0]!r}, which is not among them: name the log's robot with --robot"
            )
    return [log.with_joint_order(robot.spec.joint_names) for log in logs]


def on_one_clock(logs: Sequence[Log]) -> list[Log]:
    """Logs at one even rate."""
    even = [log if is_uniform(log) else resample(log, rate_of(log)) for log in logs]
    rate = common_rate(even)
    return [at_rate(log, rate) for log in even]


def share_of_each(one: Tested, windows: LogWindows) -> FloatArray:
    """Share that a change explains of the held-out windows of each recording; NaN where it changes nothing."""
    out = np.full(int(windows.log.max()) + 1, np.nan)
    for k in range(len(out)):
        mine = windows.held & (windows.log == k)
        if (mine & one.acts).any():
            out[k] = one.explained(mine)
    return out


def disagreement(one: Tested, windows: LogWindows, names: Sequence[str]) -> str:
    """In words: where a change explains most, and where it does harm."""
    shares = share_of_each(one, windows)
    best, worst = int(np.nanargmax(shares)), int(np.nanargmin(shares))
    told = [Path(names[k]).name if k < len(names) else f"recording {k + 1}" for k in (best, worst)]
    return (
        f"recordings disagree about {one.cause}: {one.size:.3g} {one.unit} explains {shares[best]:.0%} of the mismatch "
        f"of {told[0]} and {shares[worst]:.0%} of {told[1]}; no one number fits both, the model lacks something that "
        "depends on the motion (`trueup calibrate actuator` compares richer models)"
    )
