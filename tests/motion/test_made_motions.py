"""Motions of our own making: a robot could do them, and they do what their names say."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.motion.bodies import BodyMotion, BodyTree
from trueup.motion.check import check_motion
from trueup.motion.made.ease import GRAVITY, balanced, bump, ease
from trueup.motion.made.humanoid import PLANS
from trueup.motion.made.make import MADE, make_motion
from trueup.motion.made.quadruped import GAITS
from trueup.motion.rotations import yaw_of
from trueup.robot.load import load_robot

ALL = [*((name, robot) for name in PLANS for robot in ("g1", "g1_23")), *((name, "go2") for name in GAITS)]
_MADE = {}


def made(name, robot="g1"):
    if (name, robot) not in _MADE:
        _MADE[name, robot] = make_motion(name, load_robot(robot))
    return _MADE[name, robot]


@pytest.mark.parametrize(("name", "robot"), ALL)
def test_every_made_motion_has_no_findings(name, robot):
    report = check_motion(made(name, robot), load_robot(robot))
    assert report.findings == ()
    assert report.figures["penetration_m"] < 1e-3
    assert report.figures["skate_m_s"] < 0.02
    assert report.figures["beyond_limits_rad"] == 0.0
    assert report.figures["speed_use"] < 0.6


@pytest.mark.parametrize(("name", "robot"), ALL)
def test_they_begin_and_end_at_rest_standing(name, robot):
    motion, spec = made(name, robot), load_robot(robot).spec
    for row in (0, -1):
        assert motion.root_pos[row, 2] == pytest.approx(spec.base.stand_height, abs=0.002)
        assert np.abs(motion.joint_vel[row]).max() < 0.1
        assert motion.contacts[row].all()


@pytest.mark.parametrize("name", ["squat", "arm_raise", "side_step", "kick", "walk", "turn"])
def test_the_point_of_zero_moment_stays_between_the_feet(name):
    """c - (c_z / g) c'' of the whole body, computed from the made rows, lies within the soles' points (and 3 cm)."""
    motion, tree = made(name), BodyTree(load_robot("g1"))
    bodies = BodyMotion(motion.body_pos, motion.body_quat)
    centre, points = tree.centre(bodies), tree.points(bodies).reshape(len(motion), -1, 3)
    second = np.gradient(np.gradient(centre, axis=0), axis=0) * motion.rate_hz**2
    moment = centre[:, :2] - (centre[:, 2] / (GRAVITY + second[:, 2]))[:, None] * second[:, :2]
    for row in range(3, len(motion) - 3):
        standing = points[row][points[row][:, 2] < 0.005][:, :2]
        low, high = standing.min(axis=0) - 0.03, standing.max(axis=0) + 0.03
        assert (moment[row] > low).all(), row
        assert (moment[row] < high).all(), row


def test_they_do_what_their_names_say():
    squat, walk, turn = made("squat"), made("walk"), made("turn")
    assert squat.root_pos[:, 2].min() == pytest.approx(squat.root_pos[0, 2] - 0.2, abs=0.01)
    assert walk.root_pos[-1, 0] - walk.root_pos[0, 0] == pytest.approx(1.53, abs=0.02)
    assert yaw_of(turn.root_quat[-1:])[0] == pytest.approx(np.pi / 2, abs=0.02)
    side = made("side_step").root_pos[:, 1]
    assert side.max() > 0.15
    assert abs(side[-1] - side[0]) < 0.02
    arms = made("arm_raise")
    hand = arms.body_pos[:, arms.body_names.index("left_wrist_yaw_link"), 2]
    assert hand.max() - hand[0] > 0.25
    foot = made("kick").body_pos[:, made("kick").body_names.index("right_ankle_roll_link")]
    assert foot[:, 2].max() - foot[0, 2] > 0.15
    assert foot[:, 0].max() - foot[0, 0] > 0.2


def test_a_jump_flies_as_gravity_has_it():
    jump = made("jump")
    air = np.flatnonzero(~jump.contacts.any(axis=1))
    height = jump.root_pos[:, 2] - jump.root_pos[0, 2]
    assert 0.06 < height.max() < 0.075
    inner = air[3:-3]
    falling = np.diff(jump.root_pos[inner, 2], 2) * jump.rate_hz**2
    np.testing.assert_allclose(falling, -GRAVITY, rtol=0.02)


@pytest.mark.parametrize(("name", "together"), [("trot", ("FL", "RR")), ("pace", ("FL", "RL"))])
def test_legs_of_a_gait_swing_in_pairs(name, together):
    motion = made(name, "go2")
    feet = {foot[:2]: motion.contacts[:, k] for k, foot in enumerate(motion.foot_names)}
    pair = [feet.pop(leg) for leg in together]
    np.testing.assert_array_equal(pair[0], pair[1])
    others = list(feet.values())
    np.testing.assert_array_equal(others[0], others[1])
    assert (pair[0] | others[0]).mean() > 0.95
    assert motion.root_pos[-1, 0] > 1.0


def test_steps_and_bumps_begin_and_end_at_rest():
    time = np.linspace(0, 2, 2001)
    for path in (ease(time, 0.5, 1.5), bump(time, 0.5, 1.5)):
        speed = np.gradient(path, time)
        assert np.abs(speed[[500, 1500]]).max() < 1e-3
    assert ease(time, 0.5, 1.5)[1000] == pytest.approx(0.5)
    assert bump(time, 0.5, 1.5)[1000] == pytest.approx(1.0)


def test_a_balanced_centre_of_mass_has_its_moment_where_it_was_asked():
    time = np.arange(200) / 50.0
    support = 0.1 * (ease(time, 1.0, 1.3) - ease(time, 2.5, 2.8))[:, None]
    centre = balanced(support, 0.7, 50.0)
    second = np.diff(centre[:, 0], 2) * 50.0**2
    np.testing.assert_allclose(centre[1:-1, 0] - 0.7 / GRAVITY * second, support[1:-1, 0], atol=1e-9)
    assert 0 < centre[:, 0].max() < 0.1


def test_names_and_robots_that_do_not_fit_are_refused():
    with pytest.raises(TrueupError, match="did you mean 'squat'"):
        make_motion("sqat", load_robot("g1"))
    with pytest.raises(TrueupError, match="4 feet"):
        make_motion("trot", load_robot("g1"))
    with pytest.raises(TrueupError, match="2 feet"):
        make_motion("walk", load_robot("go2"))
    assert set(MADE) == {*PLANS, *GAITS}
