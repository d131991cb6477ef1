"""Where rewards, terminations and red flags begin to count: both sides of every threshold."""

import numpy as np
import pytest
from hand_frames import frame

from trueup.tasks.terms import rewards as r


@pytest.mark.parametrize(
    ("command", "moves"), [((0.06, 0, 0), 1), ((0.04, 0, 0), 0), ((0, 0, -0.06), 1), ((0.04, 0.04, 0), 1)]
)
def test_a_command_longer_than_five_hundredths_asks_to_move(command, moves):
    np.testing.assert_array_equal(r.commanded(frame(command=command)), bool(moves))


@pytest.mark.parametrize(("degrees", "down"), [(0, 0), (59, 0), (61, 1), (120, 1), (180, 1)])
def test_a_base_has_fallen_beyond_sixty_degrees_in_any_direction(degrees, down):
    sin, cos = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
    np.testing.assert_array_equal(r.fallen(frame(gravity=[[sin, 0, -cos], [0, -sin, -cos]])), bool(down))


def test_tilt_is_the_squared_sine_of_the_angle():
    sin, cos = np.sin(0.3), np.cos(0.3)
    np.testing.assert_allclose(r.tilt(frame(gravity=[[sin, 0, -cos], [0, sin, -cos]])), sin**2, rtol=1e-5)


def test_going_too_fast_is_as_wrong_as_going_too_slow():
    slow, fast = (r.track_velocity(frame(base_vel=[[0.5 + off, 0, 0], [off, 0, 0]])) for off in (-0.2, 0.2))
    np.testing.assert_allclose(slow, fast, rtol=1e-6)
    np.testing.assert_allclose(slow, np.exp(-0.04 / 0.25), rtol=1e-6)


def test_speed_up_and_down_is_no_matter_of_the_command():
    np.testing.assert_allclose(r.velocity_error(frame(base_vel=[[0.5, 0, 3.0], [0, 0, 3.0]])), 0.0, atol=1e-7)


def test_errors_are_told_from_what_was_asked_and_rewards_given_for_what_is_seen():
    f = frame()
    f.command[:], f.asked[:] = [0.1, 0.0, 0.2], [0.9, 0.0, 0.8]
    np.testing.assert_allclose(r.velocity_error(f), 0.9, rtol=1e-6)
    np.testing.assert_allclose(r.turn_error(f), 0.8, rtol=1e-6)
    np.testing.assert_allclose(r.track_velocity(f), np.exp(-0.01 / 0.25), rtol=1e-5)
    np.testing.assert_allclose(r.track_turn(f), np.exp(-0.04 / 0.25), rtol=1e-5)


def test_power_counts_braking_as_much_as_driving():
    f = frame(joint_vel=2.0)
    f.joint_torque[0, :2], f.joint_torque[1, :2] = [3.0, -3.0], [3.0, 3.0]
    np.testing.assert_allclose(r.energy(f), [12.0, 12.0])


def test_terms_leave_the_frame_as_it_was():
    f = frame(joint_pos=0.99, joint_vel=-2.0, joint_torque=3.0, air_time=0.4, foot_height=0.01, foot_vel=0.3)
    f.touchdown[:] = True
    before = {name: getattr(f, name).copy() for name in vars(f) if isinstance(getattr(f, name), np.ndarray)}
    for term in (
        r.energy,
        r.stand_still,
        r.joint_limits,
        r.AirTime(0.2, 0.5),
        r.Clearance(0.08),
        r.SwingHeight(0.08),
        r.slip,
    ):
        term(f)
    for name, values in before.items():
        np.testing.assert_array_equal(getattr(f, name), values, err_msg=name)


def test_steps_shorter_than_the_least_are_charged():
    f = frame(air_time=[0.1, 0.3, 9.0, 9.0])
    f.touchdown[0, :2] = True
    np.testing.assert_allclose(r.AirTime(0.25, 0.5)(f), [-0.15 + 0.05, 0.0], atol=1e-6)


def test_a_foot_higher_than_asked_costs_nothing():
    np.testing.assert_array_equal(r.Clearance(0.08)(frame(foot_height=0.3, foot_vel=[1.0, 0, 0])), 0.0)
    f = frame(swing_peak=0.3)
    f.touchdown[:] = True
    np.testing.assert_array_equal(r.SwingHeight(0.08)(f), 0.0)


def test_a_foot_in_the_air_neither_slips_nor_shuffles():
    f = frame(foot_vel=[0.3, 0, 0])
    f.foot_contact[:] = False
    np.testing.assert_array_equal(r.slip(f), 0.0)
    np.testing.assert_array_equal(r.shuffling(f), 0.0)


@pytest.mark.parametrize(
    ("speed", "height", "flag"), [(0.09, 0.0, 0), (0.11, 0.0, 1), (0.11, 0.009, 1), (0.11, 0.011, 0)]
)
def test_shuffling_begins_at_a_tenth_of_a_metre_a_second_below_a_centimetre(speed, height, flag):
    f = frame(foot_vel=[0, speed, 0])
    f.foot_height[:, 2] = height
    np.testing.assert_array_equal(r.shuffling(f), [flag, 0])  # the second is asked to stand


@pytest.mark.parametrize(("least", "flag"), [(0.45, 0), (0.35, 1)])
def test_hopping_begins_at_half_of_the_time(least, flag):
    np.testing.assert_array_equal(r.hopping(frame(duty=[0.9, 0.8, 0.7, least])), flag)


@pytest.mark.parametrize(("torque", "share"), [(18.9, 0.0), (19.1, 1.0), (-19.1, 1.0)])
def test_a_joint_is_saturated_beyond_95_percent_of_its_limit(torque, share):
    np.testing.assert_array_equal(r.saturation(frame(joint_torque=torque)), share)


@pytest.mark.parametrize(
    ("asked", "done", "flag"),
    [
        ((0.4, 0), (0.09, 0), 1),
        ((0.4, 0), (0.11, 0), 0),
        ((0.4, 0), (0, 0.4), 1),
        ((0, -0.4), (0, -0.2), 0),
        ((0.19, 0), (0, 0), 0),
    ],
)
def test_idling_is_less_than_a_quarter_of_the_asked_speed_in_its_direction(asked, done, flag):
    f = frame(command=[*asked, 0.0], base_vel=[*done, 0.0])
    np.testing.assert_array_equal(r.idling(f), flag)


def test_settled_distance_has_the_mean_of_the_rows_that_settled():
    f = frame()
    f.tool_error[:, 0], f.command_age = [0.3, 0.1], np.array([1.4, 1.6], np.float32)
    assert r.settled_distance(f).shape == (2,)
    assert r.settled_distance(f).mean() == pytest.approx(0.1)
    assert r.settled_distance(f).dtype == np.float32


def test_distance_and_angle_of_a_tool_are_lengths_of_their_halves():
    f = frame(tool_error=[[0.02, 0.03, 0.06, 0, 0, 0], [0, 0, 0, 0.2, 0.3, 0.6]])
    np.testing.assert_allclose(r.tool_distance(f), [0.07, 0.0], atol=1e-7)
    np.testing.assert_allclose(r.tool_angle(f), [0.0, 0.7], atol=1e-6)


def test_swinging_up_is_half_way_when_level_and_looks_at_the_first_joint_only():
    f = frame(joint_pos=np.pi)
    f.joint_pos[:, 0] = [np.pi / 2, -np.pi / 2]
    np.testing.assert_allclose(r.swing_up(f), 0.5, atol=1e-6)
