"""What is asked: names, limits, keys and sticks; and the ways before and after the policy."""

import numpy as np
import pytest
from made_deploys import toy_bundle, toy_spec

from trueup.core.errors import TrueupError
from trueup.deploy.control.controller import Controller
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.control.motions import fade, plan_ramp
from trueup.policy.bundle.passport import GoalFacts

WALK = GoalFacts(
    columns=("forward", "sideways", "turn"), units=("m/s", "m/s", "rad/s"), low=(-1.0, -0.5, -1.0), high=(1.0, 0.5, 1.0)
)
REACH = GoalFacts(columns=("x", "speed"), units=("m", "m/s"), low=(0.2, 0.1), high=(0.6, 0.5))


def test_at_first_everything_is_at_rest():
    assert AskedGoal(WALK).values.tolist() == [0.0, 0.0, 0.0]
    assert AskedGoal(REACH).values == pytest.approx([0.4, 0.1])  # the middle; the speed nearest to zero


def test_what_is_named_is_asked_and_the_rest_rests():
    goal = AskedGoal(WALK)
    goal.set(["turn=-0.5", "forward=0.25"])
    assert goal.as_dict() == {"forward": 0.25, "sideways": 0.0, "turn": -0.5}
    goal.set(["sideways=0.1"])
    assert goal.as_dict() == {"forward": 0.0, "sideways": 0.1, "turn": 0.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forward=0.4", "outside -0.3 to 0.3 m/s"),
        ("turn=-0.31", "outside -0.3 to 0.3 rad/s"),
        ("forwards=0.1", "did you mean 'forward'"),
        ("forward", "NAME=NUMBER"),
        ("forward=fast", "takes a number, found 'fast'"),
        ("forward=nan", "outside"),
        ("forward=inf", "outside"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(text, message):
    with pytest.raises(TrueupError, match=message):
        AskedGoal(WALK, speed=0.3).set([text])


def test_a_speed_limit_leaves_other_units_alone():
    goal = AskedGoal(REACH, speed=0.3)
    assert goal.low.tolist() == [0.2, 0.1]
    assert goal.high.tolist() == [0.6, 0.3]


def test_a_speed_limit_never_widens_what_was_trained():
    assert AskedGoal(WALK, speed=5.0).high.tolist() == [1.0, 0.5, 1.0]


@pytest.mark.parametrize("speed", [-0.1, float("nan"), float("inf")])
def test_a_speed_limit_without_meaning_is_refused(speed):
    with pytest.raises(TrueupError, match="speed limit"):
        AskedGoal(WALK, speed=speed)


def test_keys_step_by_a_tenth_and_stop_at_the_limit():
    goal = AskedGoal(WALK, speed=0.25)
    found = []
    for _ in range(7):
        goal.nudge("forward", 1)
        found.append(round(goal.as_dict()["forward"], 6))
    assert found == [0.05, 0.1, 0.15, 0.2, 0.25, 0.25, 0.25]  # a tenth of the range of 0.5
    goal.nudge("unknown", 1)
    goal.rest()
    assert goal.as_dict()["forward"] == 0.0


def test_a_stick_scales_to_each_side_and_rests_in_its_middle():
    goal = AskedGoal(GoalFacts(columns=("forward",), units=("m/s",), low=(-0.2,), high=(1.0,)))
    for share, wanted in ((1.0, 1.0), (0.5, 0.5), (-1.0, -0.2), (-0.5, -0.1), (0.0, 0.0), (7.0, 1.0)):
        goal.steer("forward", share)
        assert goal.values == pytest.approx([wanted])
    goal.steer("forward", float("nan"))
    assert goal.values == pytest.approx([1.0])


# --- ramps ---
@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    return Controller(toy_bundle(tmp_path_factory.mktemp("toy") / "toy.bundle"), toy_spec().joint_names)


def test_a_ramp_starts_where_the_robot_is_and_ends_in_the_default_pose(controller):
    start = np.array([0.0, 0.5, 0.0])
    ramp = plan_ramp(start, controller.default_pose, control_hz=50.0, least_s=2.0, rest_s=0.5, stiffness=2.0)
    commands = [ramp.command(controller, k) for k in range(ramp.steps + ramp.rest)]
    targets = np.array([command.target_pos for command in commands])
    assert (ramp.steps, ramp.rest) == (100, 25)
    assert np.abs(targets[0] - start).max() < 1e-4
    assert np.array_equal(targets[ramp.steps - 1], controller.default_pose)
    assert np.abs(np.diff(targets, axis=0)).max() < 0.8 / 50
    assert np.abs(np.diff(targets, n=2, axis=0)).max() < 2e-3  # no jerk at the ends


def test_gains_grow_to_twice_the_policys_and_come_back_during_the_rest(controller):
    ramp = plan_ramp(controller.default_pose, controller.default_pose, control_hz=50.0, rest_s=1.0, stiffness=2.0)
    kp = np.array([ramp.command(controller, k).kp / controller.kp for k in range(ramp.steps + ramp.rest)])
    kd = np.array([ramp.command(controller, k).kd / controller.kd for k in range(ramp.steps + ramp.rest)])
    assert kp[0] == pytest.approx(2.0 * (0.1 + 0.9 * 0.02))
    assert np.all(np.diff(kp[: ramp.steps // 2], axis=0) > 0.0)
    assert kp[ramp.steps - 1] == pytest.approx(2.0)
    assert kp[-1] == pytest.approx(1.0)
    assert kd[0] == pytest.approx(2.0)  # damping is there from the beginning
    assert kd[-1] == pytest.approx(1.0)


def test_a_far_pose_takes_longer_than_the_least_time(controller):
    ramp = plan_ramp(controller.default_pose + 2.0, controller.default_pose, control_hz=50.0, most_speed=0.8)
    targets = np.array([ramp.command(controller, k).target_pos for k in range(ramp.steps)])
    assert ramp.steps == np.ceil(1.875 * 2.0 / 0.8 * 50)
    assert np.abs(np.diff(targets, axis=0)).max() <= 0.8 / 50 + 1e-9


def test_a_ramp_without_time_is_refused(controller):
    with pytest.raises(TrueupError, match="takes some time"):
        plan_ramp(controller.default_pose, controller.default_pose, control_hz=50.0, least_s=0.0)


def test_fading_takes_the_stiffness_and_leaves_the_damping(controller):
    for share, left in ((1.0, 1.0), (0.5, 0.5), (0.0, 0.0), (-1.0, 0.0)):
        command = fade(controller, controller.default_pose, share)
        assert command.kp == pytest.approx(left * controller.kp)
        assert command.kd == pytest.approx(controller.kd)
