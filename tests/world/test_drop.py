"""Dropping robots: many at once, each with its own physics."""

import numpy as np
import pytest
from made_params import made_params, one

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot, zoo_names
from trueup.world.drop import drop
from trueup.world.verbs import DropCfg


def test_go2_lands_on_its_feet():
    result = drop(load_robot("go2"), DropCfg(seconds=2.0))
    assert result.diverged == 0
    heights = result.log["base_pos"][:, 2]
    assert heights[0] == pytest.approx(0.3235 + 0.10)
    assert 0.2 < result.final_height[0] < 0.3235
    assert len(result.log) == 100
    assert result.qpos.shape == (100, 19)


@pytest.mark.parametrize("name", zoo_names())
def test_every_robot_survives_randomised_physics(name):
    result = drop(load_robot(name), DropCfg(seconds=1.0, nsim=64, randomize=True, seed=11))
    assert result.diverged == 0
    assert result.steps_per_second > 0


def test_randomised_heights_differ_and_repeat_with_the_seed():
    cfg = DropCfg(seconds=1.0, nsim=16, randomize=True, seed=4)
    first, second = (drop(load_robot("go2"), cfg).final_height for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert len(set(first)) == 16


def test_progress_reaches_one():
    seen = []
    drop(load_robot("pendulum"), DropCfg(seconds=0.1), progress=seen.append)
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


def test_impossible_drops_are_refused():
    with pytest.raises(TrueupError, match="seconds"):
        DropCfg(seconds=0)
    with pytest.raises(TrueupError, match="height"):
        DropCfg(height_m=-1)


def test_one_drop_has_the_estimate_of_a_fit_and_many_are_drawn_from_its_posterior():
    robot = load_robot("go2")
    joints = robot.spec.joint_names
    estimates = [one("friction_kcs", joints, "weak", 0.5), one("kp", joints, "weak", 0.5, mode="times")]
    fit = made_params(joints, estimates, [0.0, 0.0], np.eye(2))
    cases = ((fit, 1), (fit, 2), (None, 1))
    alone, again, plain = (drop(robot, DropCfg(seconds=1.0, params=p, seed=s)) for p, s in cases)
    np.testing.assert_array_equal(alone.qpos, again.qpos)
    assert alone.final_height[0] < plain.final_height[0] - 0.005  # half the gain
    assert [entry.source for entry in alone.origins] == ["calibration", "calibration"]
    many = drop(robot, DropCfg(seconds=0.5, nsim=8, params=fit))
    assert len(set(many.final_height)) == 8
