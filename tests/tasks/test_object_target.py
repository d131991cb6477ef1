"""Where an object shall be brought, and where it begins."""

import numpy as np
import pytest
from given_random import GivenRandom

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import compile_model
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.goals.goal import GoalPlace
from trueup.tasks.goals.object_target import ObjectTargetGoal
from trueup.tasks.goals.tool_pose import arm_chain
from trueup.tasks.load import load_task
from trueup.tasks.task import error_label

CFG = ObjectTargetGoal(object="cube", x=(0.2, 0.3), y=(-0.1, 0.1), hold_s=(6.0, 10.0))


@pytest.fixture(scope="module")
def sim():
    return build(load_task("so101-push"), EnvCfg(nenv=2, threads=1)).sim


def started(sim, *draws):
    return CFG.start(GoalPlace(sim, (), GivenRandom(2, *draws)))


def test_targets_fill_their_ranges(sim):
    goal = started(sim, [[0.0], [0.0]], [[0.5, 0.25], [0.0, 1.0]])
    goal.reset(np.arange(2))
    np.testing.assert_allclose(goal.values, [[0.25, -0.05], [0.2, 0.1]], atol=1e-6)


def test_a_target_is_held_for_its_time(sim):
    goal = started(sim, [[0.5], [1.0]], [[0.5, 0.5]] * 2, [[0.0]], [[1.0, 0.5]])
    goal.reset(np.arange(2))
    for _ in range(199):  # 8 s at 25 Hz are 200 steps
        goal.advance()
    np.testing.assert_allclose(goal.values[:, 0], 0.25, rtol=1e-6)
    goal.advance()
    np.testing.assert_allclose(goal.values[:, 0], [0.3, 0.25], rtol=1e-6)


def test_the_object_begins_in_its_area_turned_about_the_vertical(sim):
    goal = started(sim, [[0.5, 0.5, 0.5], [1.0, 0.0, 0.75]])
    qpos, qvel = np.tile(sim.default_qpos, (2, 1)), np.full((2, sim.model.nv), 0.7)
    goal.adjust_start(np.arange(2), qpos, qvel)
    at = int(sim.model.joint(int(sim.model.body("cube").jntadr[0])).qposadr[0])
    half = np.sqrt(0.5)  # three quarters of the way from -180 to 180 degrees: a quarter turn to the left
    np.testing.assert_allclose(qpos[0, at : at + 7], [0.25, 0.0, 0.02, 1.0, 0.0, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(qpos[1, at : at + 7], [0.3, -0.1, 0.02, half, 0.0, 0.0, half], atol=1e-9)
    arm = np.delete(np.arange(sim.model.nq), np.arange(at, at + 7))
    np.testing.assert_array_equal(qpos[:, arm], np.tile(sim.default_qpos[arm], (2, 1)))
    assert (qvel == 0.7).all()


def test_sliders_move_the_target_within_its_area_and_left_mirrors_to_right(sim):
    goal = started(sim)
    assert [(one.low, one.high) for one in goal.sliders] == [CFG.x, CFG.y]
    assert goal.mirror == (1, -1)


def test_its_error_is_a_distance():
    assert error_label(load_task("so101-push")) == "object distance, m"


def test_a_robot_without_a_tool_is_refused():
    robot = load_robot("go2")
    with pytest.raises(TrueupError, match="'go2' has no end_effector"):
        arm_chain(compile_model(robot), robot)
