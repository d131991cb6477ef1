"""Distances between distributions of a log and of simulated runs of the same policy, for logs without their commands.

Wasserstein's distance of order one of each column, in standard deviations of the simulated one, median over columns: 0
means equal, 1 means that values lie a standard deviation from the simulated ones. It shows what differs, not
why.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.gap.symptoms.reference import ReferenceCfg, simulate
from trueup.gap.symptoms.run import Run
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.robot.load import Robot
from trueup.tasks.load import load_task
from trueup.world.fitted.calibration import SimParams

SIGNALS = ("joint_pos", "joint_vel", "joint_torque", "imu_gyro")
_ROBOTS, _SPREAD = 8, 1e-6


def distances(
    robot: Robot, log: Log, opened: PolicyBundle, fit: SimParams | None = None, *, seed: int = 0, threads: int = 1
) -> dict[str, float]:
    """Distance of every signal that the log and simulated runs have in common."""
    task = load_task(opened.passport.policy.task)
    own = log.with_joint_order(robot.spec.joint_names)
    run = Run(name="log", log=own, control_hz=own.rate_hz)
    cfg = ReferenceCfg(robots=_ROBOTS, seed=seed, threads=threads, fit=fit)
    made = [one.log for one in simulate(opened, task, run, cfg, drawn=False)]
    return compare(own, made)


def compare(log: Log, made: Sequence[Log]) -> dict[str, float]:
    """Median over columns of the scaled distance, by signal."""
    out = {}
    for name in SIGNALS:
        if name in log and np.isfinite(log[name]).all() and all(name in one for one in made):
            out[name] = _distance(log[name], np.concatenate([one[name] for one in made]))
    return out


def _distance(measured: FloatArray, simulated: FloatArray) -> float:
    from scipy.stats import wasserstein_distance

    scale = np.maximum(simulated.std(axis=0), _SPREAD)
    each = [wasserstein_distance(m, s) for m, s in zip(measured.T, simulated.T, strict=True)]
    return float(np.median(np.array(each) / scale))
