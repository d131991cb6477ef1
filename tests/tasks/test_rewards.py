"""Rewards, terminations and red flags on frames made by hand."""

import numpy as np
import pytest
from hand_frames import frame

from trueup.tasks.terms import rewards as r


def test_tracking_is_one_when_right_and_falls_with_the_error():
    np.testing.assert_allclose(r.track_velocity(frame()), [np.exp(-1.0), 1.0], rtol=1e-6)
    np.testing.assert_allclose(r.track_velocity(frame(base_vel=[[0.5, 0, 0], [0, 0, 0]])), 1.0)
    np.testing.assert_allclose(r.track_turn(frame(base_spin=[[0, 0, 0.5], [0, 0, 0]])), [np.exp(-1.0), 1.0], rtol=1e-6)
    np.testing.assert_allclose(r.velocity_error(frame(base_vel=[[0.5, 0.3, 0], [0, 0, 0]])), [0.3, 0.0], atol=1e-7)
    np.testing.assert_allclose(r.turn_error(frame(base_spin=[[0, 0, -0.4], [0, 0, 0]])), [0.4, 0.0], atol=1e-7)


def test_posture_terms():
    np.testing.assert_allclose(r.tilt(frame(gravity=[[0.6, 0, -0.8], [0, 0, -1]])), [0.36, 0.0], rtol=1e-6)
    np.testing.assert_allclose(r.Height(0.35)(frame()), 0.0025, rtol=1e-4)
    np.testing.assert_allclose(r.bounce(frame(base_vel=[[0, 0, 2], [0, 0, 0]])), [4.0, 0.0])
    np.testing.assert_allclose(r.wobble(frame(base_spin=[[1, 2, 9], [0, 0, 0]])), [5.0, 0.0])
    np.testing.assert_allclose(r.pose(frame(joint_pos=0.5)), 3.0)


def test_stand_still_counts_only_where_asked_to_stand():
    np.testing.assert_allclose(r.stand_still(frame(joint_pos=0.1)), [0.0, 1.2], rtol=1e-6)


def test_effort_terms():
    f = frame(joint_vel=2.0, joint_torque=-3.0)
    np.testing.assert_allclose(r.energy(f), 72.0)
    np.testing.assert_allclose(r.torque(f), 108.0)
    np.testing.assert_allclose(r.joint_speed(f), 48.0)
    np.testing.assert_allclose(r.action_rate(frame(action=1.0, last_action=0.5)), 3.0)


def test_joint_limits_count_what_is_beyond_95_percent():
    f = frame()
    f.joint_pos[0, 0], f.joint_pos[0, 1], f.joint_pos[1, 0] = 1.0, -0.97, 0.94
    np.testing.assert_allclose(r.joint_limits(f), [0.05 + 0.02, 0.0], atol=1e-6)


def test_air_time_pays_for_long_steps_at_touchdown_only():
    f = frame(air_time=0.4)
    np.testing.assert_array_equal(r.AirTime(0.2, 0.5)(f), 0.0)
    f.touchdown[:, 0] = True
    np.testing.assert_allclose(r.AirTime(0.2, 0.5)(f), [0.2, 0.0], rtol=1e-6)  # the second is asked to stand
    f.air_time[:] = 5.0
    np.testing.assert_allclose(r.AirTime(0.2, 0.5)(f), [0.3, 0.0], rtol=1e-6)


def test_slip_looks_at_feet_on_the_ground_and_clearance_at_all_that_move_low():
    f = frame(foot_vel=[0.3, 0.4, 9.0], foot_height=[0.0, 0.03, 0.08, 0.2])
    f.foot_contact[0, 1:] = False
    np.testing.assert_allclose(r.slip(f), [0.25, 1.0], rtol=1e-6)
    np.testing.assert_allclose(r.Clearance(0.08)(f), (0.08**2 + 0.05**2) * 0.5, rtol=1e-5)


def test_swing_height_charges_low_steps_when_they_end():
    f = frame(swing_peak=[0.02, 0.06, 0.08, 0.2])
    f.command[:] = [0.5, 0.0, 0.0]
    np.testing.assert_array_equal(r.SwingHeight(0.08)(f), 0.0)  # no step ends now
    f.touchdown[0] = True
    np.testing.assert_allclose(r.SwingHeight(0.08)(f), [0.75**2 + 0.25**2, 0.0], rtol=1e-5)
    f.command[:] = 0.0
    np.testing.assert_array_equal(r.SwingHeight(0.08)(f), 0.0)  # asked to stand


@pytest.mark.parametrize(
    ("feet", "wanted"),
    [("1001", 1.0), ("0110", 1.0), ("1111", 0.0), ("0000", 0.0), ("1010", 0.0), ("1100", -1.0), ("0111", 0.0)],
)
def test_trot_tells_a_diagonal_from_a_side_and_from_a_bound(feet, wanted):
    f = frame()
    f.foot_contact[:] = [digit == "1" for digit in feet]
    np.testing.assert_array_equal(r.trot(f), [wanted, 0.0])  # the second is asked to stand


def test_standing_quietly_means_no_joint_speed_and_every_foot_down():
    f = frame(joint_vel=0.5)
    f.foot_contact[:, 0] = False
    np.testing.assert_allclose(r.stand_quiet(f), [0.0, 0.1 * 12 * 0.25 + 1.0], rtol=1e-6)


def test_close_tracking_still_falls_where_the_wide_kernel_is_flat():
    f = frame(base_vel=[[0.4, 0, 0], [0, 0, 0]], base_spin=[[0, 0, 0.2], [0, 0, 0]])
    np.testing.assert_allclose(r.track_velocity_closely(f), [np.exp(-0.25), 1.0], rtol=1e-5)
    np.testing.assert_allclose(r.track_turn_closely(f), [np.exp(-1.0), 1.0], rtol=1e-5)


def test_collisions_and_falls():
    f = frame(body_contact=[True, False], gravity=[[0, 0, -1], [0.9, 0, -0.4]])
    np.testing.assert_array_equal(r.collision(f), [1.0, 0.0])
    np.testing.assert_array_equal(r.trunk_down(f), [True, False])
    np.testing.assert_array_equal(r.fallen(f), [False, True])


def test_a_fall_costs_where_the_trunk_touches_or_the_base_lies():
    np.testing.assert_array_equal(r.fall(frame(body_contact=[True, False])), [1.0, 0.0])
    np.testing.assert_array_equal(r.fall(frame(gravity=[[0, 0, -1], [0, 1, 0]])), [0.0, 1.0])


def test_tool_terms():
    f = frame(tool_error=[[0.03, 0, 0, 0, 0.7, 0], [0, 0, 0, 0, 0, 0]])
    np.testing.assert_allclose(r.tool_distance(f), [0.03, 0.0], atol=1e-7)
    f.command_age = np.array([2.0, 1.0], np.float32)
    np.testing.assert_allclose(r.settled_distance(f), [0.03, 0.03], atol=1e-7)  # of the first, in every row
    f.command_age[:] = 0.0
    np.testing.assert_allclose(r.settled_distance(f), [0.03, 0.0], atol=1e-7)
    np.testing.assert_allclose(r.Near(r.tool_distance, 0.03)(f), [1 - np.tanh(1.0), 1.0], rtol=1e-5)
    np.testing.assert_allclose(r.Near(r.tool_distance, 0.2)(f), [1 - np.tanh(0.15), 1.0], rtol=1e-5)
    np.testing.assert_allclose(r.Near(r.tool_angle, 0.7)(f), [1 - np.tanh(1.0), 1.0], rtol=1e-5)


def test_swing_up_is_one_upright():
    f = frame()
    f.joint_pos[:, 0] = [np.pi, 0.0]
    np.testing.assert_allclose(r.swing_up(f), [1.0, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    "term", [r.track_velocity, r.tilt, r.energy, r.slip, r.AirTime(0.2, 0.5), r.hopping, r.shuffling]
)
def test_terms_are_float32_of_one_number_a_row(term):
    assert term(frame()).shape == (2,)
    assert term(frame()).dtype == np.float32


# --- red flags ---
def test_shuffling_is_sliding_with_all_feet_low():
    np.testing.assert_array_equal(r.shuffling(frame(foot_vel=[0.3, 0, 0])), [1.0, 0.0])
    np.testing.assert_array_equal(r.shuffling(frame(foot_vel=[0.3, 0, 0], foot_height=0.05)), 0.0)
    np.testing.assert_array_equal(r.shuffling(frame()), 0.0)


def test_hopping_is_an_uneven_share_of_the_ground():
    np.testing.assert_array_equal(r.hopping(frame(duty=[[0.9, 0.5, 0.5, 0.1], [0.5, 0.5, 0.6, 0.5]])), [1.0, 0.0])


def test_saturation_is_the_share_of_joints_at_their_limit():
    f = frame()
    f.joint_torque[0, :3] = -19.5
    np.testing.assert_allclose(r.saturation(f), [0.25, 0.0])


def test_idling_is_not_going_where_asked():
    np.testing.assert_array_equal(r.idling(frame()), [1.0, 0.0])
    np.testing.assert_array_equal(r.idling(frame(base_vel=[[0.3, 0, 0], [0, 0, 0]])), 0.0)
