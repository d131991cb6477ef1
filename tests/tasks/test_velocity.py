"""Velocities that are asked for: from numbers in [0, 1) to commands, how long they are held, and how they mirror."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from given_random import GivenRandom

from trueup.core.rows import RowRandom
from trueup.tasks.goals.goal import GoalPlace, NoGoal
from trueup.tasks.goals.velocity import VelocityGoal
from trueup.tasks.load import load_task
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.task import error_label, error_metric

CFG = VelocityGoal(forward=(-1.0, 1.0), sideways=(-0.5, 0.5), turn=(-2.0, 2.0), hold_s=(4.0, 8.0))
DT = 0.02


def started(random, cfg=CFG):
    sim = SimpleNamespace(nsim=len(random.counter), control_dt=DT)
    return cfg.start(GoalPlace(sim, (), random))


def drawn(unit, cfg=CFG):
    """What is asked of one row for four numbers in [0, 1)."""
    goal = started(GivenRandom(1, [[0.0]], [unit]), cfg)
    goal.reset(np.arange(1))
    return goal.values[0]


def test_numbers_from_zero_to_one_fill_the_ranges():
    np.testing.assert_allclose(drawn([0.75, 0.25, 0.875, 0.5]), [0.5, -0.25, 1.5], rtol=1e-6)
    np.testing.assert_allclose(drawn([0.0, 0.0, 0.0, 0.5]), [-1.0, -0.5, -2.0], rtol=1e-6)


def test_ranges_need_not_lie_about_zero():
    cfg = replace(CFG, forward=(0.5, 1.5))
    np.testing.assert_allclose(drawn([0.25, 0.0, 0.0, 0.5], cfg)[0], 0.75, rtol=1e-6)


def test_a_small_speed_over_the_ground_is_none_but_the_turn_stays():
    np.testing.assert_allclose(drawn([0.52, 0.55, 0.75, 0.5]), [0.0, 0.0, 1.0])  # 0.04 and 0.05 m/s


def test_smallness_is_that_of_the_whole_speed_not_of_its_parts():
    np.testing.assert_allclose(drawn([0.54, 0.59, 0.75, 0.5]), [0.08, 0.09, 1.0], atol=1e-6)  # 0.12 m/s together


def test_a_small_turn_is_none_but_the_speed_stays():
    np.testing.assert_allclose(drawn([0.75, 0.25, 0.52, 0.5]), [0.5, -0.25, 0.0])  # 0.08 rad/s


def test_the_share_that_stands_is_asked_nothing():
    cfg = replace(CFG, standing=0.2)
    assert not drawn([0.9, 0.9, 0.9, 0.19], cfg).any()
    assert drawn([0.9, 0.9, 0.9, 0.21], cfg).all()


def test_the_share_that_goes_straight_is_asked_not_to_turn():
    cfg = replace(CFG, straight=0.3)
    np.testing.assert_allclose(drawn([0.75, 0.25, 0.9, 0.71], cfg), [0.5, -0.25, 0.0])
    np.testing.assert_allclose(drawn([0.75, 0.25, 0.75, 0.69], cfg), [0.5, -0.25, 1.0])


def test_a_velocity_is_held_for_the_time_that_was_drawn():
    first, second = [0.75, 0.5, 0.5, 0.5], [0.25, 0.5, 0.5, 0.5]
    goal = started(GivenRandom(1, [[0.5]], [first], [[0.0]], [second]))
    goal.reset(np.arange(1))
    for _ in range(299):  # 4 s and half of the 4 s up to 8 s are 300 steps
        goal.advance()
    assert goal.values[0, 0] == np.float32(0.5)
    assert goal.age[0] == pytest.approx(299 * DT, rel=1e-4)
    goal.advance()
    assert goal.values[0, 0] == np.float32(-0.5)
    assert goal.age[0] == 0.0


def test_rows_are_asked_anew_each_at_its_own_time():
    unit = [0.75, 0.5, 0.5, 0.5]
    goal = started(GivenRandom(2, [[0.0], [0.9]], [unit, unit], [[0.9]], [[0.25, 0.5, 0.5, 0.5]]))
    goal.reset(np.arange(2))
    for _ in range(200):  # 4 s
        goal.advance()
    np.testing.assert_allclose(goal.values[:, 0], [-0.5, 0.5])
    np.testing.assert_allclose(goal.age, [0.0, 4.0], rtol=1e-4)


def test_a_new_episode_changes_only_its_own_row():
    goal = started(RowRandom(3, "command", 4))
    goal.reset(np.arange(4))
    before = goal.values.copy()
    goal.reset(np.array([2]))
    np.testing.assert_array_equal(goal.values[[0, 1, 3]], before[[0, 1, 3]])
    assert (goal.values[2] != before[2]).any()


def test_what_is_held_by_hand_stays_until_the_episode_ends():
    unit = [0.75, 0.25, 0.875, 0.5]
    goal = started(GivenRandom(1, [[0.0]], [unit], [[0.0]], [unit]))
    goal.reset(np.arange(1))
    goal.hold(np.array([0.3, 0.1, -0.2]))
    for _ in range(1000):  # 20 s: it would have been drawn anew after 4 s
        goal.advance()
    np.testing.assert_allclose(goal.values, [[0.3, 0.1, -0.2]], rtol=1e-6)
    goal.reset(np.arange(1))
    np.testing.assert_allclose(goal.values, [[0.5, -0.25, 1.5]], rtol=1e-6)


def test_a_goal_goes_on_from_its_memory():
    goal, other = (started(RowRandom(1, "command", 3)) for _ in range(2))
    goal.reset(np.arange(3))
    for _ in range(150):
        goal.advance()
    for name, values in other.memory().items():
        values[...] = goal.memory()[name]
    for _ in range(600):  # everyone is asked anew meanwhile
        goal.advance()
        other.advance()
        np.testing.assert_array_equal(goal.values, other.values)


def test_outside_training_a_policy_sees_it_move_by_its_rate_in_a_second():
    goal = started(RowRandom(0, "command", 1), replace(CFG, rate=(4.0, 2.0, 8.0)))
    np.testing.assert_allclose(goal.command_step, [0.08, 0.04, 0.16])
    assert started(RowRandom(0, "command", 1)).command_step == ()


def test_sliders_have_the_ranges_of_their_columns_and_keys_of_their_own():
    sliders = started(RowRandom(0, "command", 1)).sliders
    assert [(one.low, one.high) for one in sliders] == [CFG.forward, CFG.sideways, CFG.turn]
    for slider, column in zip(sliders, CFG.columns, strict=True):
        assert slider.name.startswith(column)
    keys = [key for one in sliders for key in one.keys]
    assert len(set(keys)) == len(keys) == 6


def test_what_came_of_it_is_told_in_the_columns_of_the_sliders():
    frame = Frame(1, {}, None)
    frame.base_vel = np.array([[0.4, -0.1, 7.0]], np.float32)
    frame.base_spin = np.array([[8.0, 9.0, 0.6]], np.float32)
    measured = started(RowRandom(0, "command", 1)).measured(frame)
    np.testing.assert_allclose(measured, [[0.4, -0.1, 0.6]], rtol=1e-6)


def walked(command):
    """Where a robot that does exactly what is asked is after 3 s: x, y, heading."""
    x = y = heading = 0.0
    for _ in range(150):
        x += DT * (np.cos(heading) * command[0] - np.sin(heading) * command[1])
        y += DT * (np.sin(heading) * command[0] + np.cos(heading) * command[1])
        heading += DT * command[2]
    return np.array([x, y, heading])


def test_a_mirrored_command_leads_to_the_mirrored_place():
    goal = started(RowRandom(0, "command", 1))
    command = np.array([0.8, 0.3, 0.5])
    np.testing.assert_allclose(walked(command * goal.mirror), walked(command) * [1, -1, -1])


def test_its_course_is_what_is_asked():
    goal = started(RowRandom(0, "command", 2))
    goal.reset(np.arange(2))
    np.testing.assert_array_equal(goal.course(), goal.values)


def test_the_error_of_a_task_is_its_goals_if_the_task_measures_it():
    task = load_task("go2-velocity")
    assert error_metric(task) == "velocity_error"
    assert error_label(task) == "velocity error, m/s"
    blind = replace(task, metrics={})
    assert error_metric(blind) is None
    assert error_label(blind) == ""


def test_no_goal_asks_nothing_and_can_be_steered_by_nothing():
    goal = NoGoal().start(GoalPlace(SimpleNamespace(nsim=3, control_dt=DT), (), RowRandom(0, "command", 3)))
    goal.reset(np.arange(3))
    goal.advance()
    assert goal.values.shape == (3, 0)
    assert (goal.mirror, goal.sliders, goal.command_step, goal.memory()) == ((), (), (), {})
    assert goal.course() is None
    assert goal.measured(Frame(3, {}, None)) is None
    assert error_label(load_task("pendulum-swingup")) == ""
