"""Sizes that were planted in the simulator come out again, on a log that the simulator itself made."""

import numpy as np
import pytest

from trueup.data.log import Log
from trueup.gap.causes.hypotheses import HYPOTHESES
from trueup.gap.causes.search import Search
from trueup.gap.causes.structure import following, turned
from trueup.gap.mismatch import Model
from trueup.gap.windows import cut
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

RATE, SECONDS = 200.0, 8.0


def _log(name=None, factor=1.0):
    robot = load_robot("go2")
    sim = BatchSim(robot, SimCfg(threads=1, control_hz=RATE, physics_hz=RATE, model=ModelCfg(base="fixed")))
    if name is not None:
        sim.params.set(name, sim.params.get(name) * factor)
    time = np.arange(round(SECONDS * RATE)) / RATE
    hz = 0.5 + 0.13 * np.arange(robot.spec.njoint)
    target = robot.spec.default_pose + 0.25 * np.sin(2 * np.pi * hz * time[:, None])
    sim.reset()
    after = sim.rollout(target[None])["qpos"][0][:, sim.index.qpos]
    pos = np.concatenate([sim.robot.spec.default_pose[None], after[:-1]])
    signals = {"joint_pos": pos, "target_pos": target}
    return robot, Log(time=time, joint_names=robot.spec.joint_names, signals=signals)


def _tested(robot, log, cause):
    windows = cut(robot, log, walking=False, window_s=0.3, most=16)
    search = Search(Model(robot=robot, params=None, walking=False), windows)
    return search.test(next(one for one in HYPOTHESES if one.cause == cause)), windows


@pytest.mark.medium
def test_a_planted_gain_is_found_and_explains_held_out_windows():
    robot, log = _log("kp", 0.6)
    found, windows = _tested(robot, log, "gain")
    assert found.matters
    assert found.size == pytest.approx(0.6, abs=0.08)
    assert found.explained(windows.held) > 0.8


def test_a_turned_joint_follows_its_target_backwards():
    _, log = _log()
    match = np.diag(following(turned(log, 4, commands=True, states=False)))
    assert match[4] < -0.5
    assert (np.delete(match, 4) > 0.5).all()
