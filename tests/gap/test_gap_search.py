"""Sizes that were planted in the simulator come out again, on a log that the simulator itself made."""

import numpy as np
import pytest

from trueup.data.log import Log
from trueup.gap.causes.hypotheses import HYPOTHESES
from trueup.gap.causes.search import CauseSearch
from trueup.gap.causes.structure import WiringChange, changed, changes, clock_by_speeds, on_clock
from trueup.gap.mismatch import Model
from trueup.gap.windows import cut
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

RATE, SECONDS = 200.0, 6.0


def _log(name=None, factor=1.0):
    robot = load_robot("go2")
    sim = BatchSim(robot, SimCfg(threads=1, control_hz=RATE, physics_hz=RATE, model=ModelCfg(base="fixed")))
    if name is not None:
        sim.params.set(name, sim.params.get(name) * factor)
    time = np.arange(round(SECONDS * RATE)) / RATE
    hz = 0.5 + 0.13 * np.arange(robot.spec.njoint)
    target = robot.spec.default_pose + 0.25 * np.sin(2 * np.pi * hz * time[:, None])
    sim.reset()
    out = sim.rollout(target[None], record=("qpos", "qvel"))
    pos = np.concatenate([sim.robot.spec.default_pose[None], out["qpos"][0][:-1, sim.index.qpos]])
    vel = np.concatenate([np.zeros((1, robot.spec.njoint)), out["qvel"][0][:-1, sim.index.dof]])
    signals = {"joint_pos": pos, "joint_vel": vel, "target_pos": target}
    return robot, Log(time=time, joint_names=robot.spec.joint_names, signals=signals)


@pytest.mark.medium
def test_a_planted_gain_is_found_and_explains_held_out_windows():
    robot, log = _log("kp", 0.6)
    windows = cut(robot, log, walking=False, window_s=0.3, most=16)
    search = CauseSearch(Model(robot=robot, params=None, walking=False), windows)
    found = search.test(next(one for one in HYPOTHESES if one.cause == "gain"))
    assert found.matters
    assert found.size == pytest.approx(0.6, abs=0.08)
    assert found.explained(windows.held) > 0.8


def test_every_pair_and_every_joint_is_tried_both_ways():
    tried = list(changes(4))
    assert sum(one.cause == "joint order" for one in tried) == 12
    assert sum(one.cause == "sign" for one in tried) == 8


def test_an_exchange_made_twice_is_none():
    robot, log = _log()
    windows = cut(robot, log, walking=False, window_s=0.3, most=8)
    once = changed(windows, WiringChange((1, 5), states=True))
    assert np.array_equal(once.measured[..., 1], windows.measured[..., 5])
    again = changed(once, WiringChange((1, 5), states=True))
    assert np.array_equal(again.recorded.target, windows.recorded.target)
    turned = changed(windows, WiringChange((4,), states=False))
    assert np.array_equal(turned.recorded.target[..., 4], -windows.recorded.target[..., 4])
    assert np.array_equal(turned.measured, windows.measured)


def test_reported_speeds_tell_how_fast_the_clock_runs():
    _, log = _log()
    assert clock_by_speeds(log) == pytest.approx(1.0, abs=0.02)
    slow = on_clock(log, 1.3)
    assert "joint_vel" not in slow
    assert clock_by_speeds(slow) is None
    slow = Log(time=1.3 * log.time, joint_names=log.joint_names, signals=log.signals)
    assert clock_by_speeds(slow) == pytest.approx(1.3, abs=0.03)
