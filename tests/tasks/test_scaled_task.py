"""A task for a robot twice the size of go2: every number worked out by hand, and written into a file that loads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from made_figures import figures

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.tasks.load import described_tasks, load_task
from trueup.tasks.similar.figures import GRAVITY, measure
from trueup.tasks.similar.laws import Laws
from trueup.tasks.similar.scale import Scaled, require_scalable, scale_task
from trueup.tasks.similar.servo import SettledServo, give_servo, scale_servo
from trueup.tasks.similar.source import function_name, task_source
from trueup.tasks.task import Rates, Reward
from trueup.world.randomization.randomize import Draw

TASK, GO2 = load_task("go2-velocity"), load_robot("go2")
ALIKE = SettledServo(1.0, 0.8, 0.8)
ROOT = np.sqrt(2.0)


@pytest.fixture(scope="module")
def small():
    return measure(GO2)


@pytest.fixture(scope="module")
def large(small):
    """Of the same stuff: 2 in length, 8 in mass, 16 in torque, 32 in inertia, 16 sqrt(2) in damping."""
    joints = {
        name: one._replace(torque=16 * one.torque, inertia=32 * one.inertia, damping=16 * ROOT * one.damping)
        for name, one in small.joints.items()
    }
    return replace(
        small, name="large", base="trunk", mass=8 * small.mass, leg=2 * small.leg, lightest=32 * small.lightest,
        stand_height=2 * small.stand_height, joints=joints,
    )  # fmt: skip


@pytest.fixture(scope="module")
def doubled(small, large) -> Scaled:
    return scale_task(TASK, GO2, Laws(small, large), ALIKE)


def after(numbers):
    return {number.name: number.after for number in numbers}


# --- the numbers ---
@pytest.mark.parametrize(
    ("name", "grows"),
    [
        ("track_velocity", 1.0),
        ("tilt", 1.0),
        ("height", 4.0),
        ("bounce", 2.0),
        ("wobble", 0.5),
        ("energy", 8.0 * ROOT),
        ("feet_air_time", ROOT),
        ("clearance", 4.0 * ROOT),
        ("slip", 2.0),
        ("swing_height", 1.0),
    ],
)
def test_a_weight_shrinks_as_its_cost_grows(doubled, name, grows):
    reward = doubled.rewards[name]
    assert reward.weight.after == pytest.approx(TASK.rewards[name].weight / grows, rel=5e-3)
    assert reward.late == TASK.rewards[name].late


def test_numbers_in_rewards_are_lengths_and_times(doubled, small):
    made = {name: after(reward.term.arguments) for name, reward in doubled.rewards.items()}
    assert made["feet_air_time"] == pytest.approx({"least_s": 0.25 * ROOT, "most_s": 0.5 * ROOT}, rel=5e-3)
    assert made["swing_height"] == made["clearance"] == {"target_m": 0.16}
    below = small.stand_height - 0.30  # as far below the standing height as before, at this scale
    assert made["height"]["target_m"] == pytest.approx(2 * small.stand_height - 2 * below, rel=5e-3)


def test_pushes_grow_with_the_weight_and_last_longer(doubled):
    assert after(doubled.pushes) == pytest.approx({"newton": 640.0, "seconds": 0.283})


def test_episodes_begin_faster_over_the_ground_and_slower_in_turns(doubled):
    assert after(doubled.start) == pytest.approx({"vel": 0.141, "spin": 0.0707})  # angles keep their numbers


def test_payloads_and_offsets_of_the_base_are_those_of_a_larger_robot(doubled):
    assert after(doubled.randomize["payload"]) == {"high": 16.0}
    assert after(doubled.randomize["com_offset"]) == {"low": -0.06, "high": 0.06, "of": ("trunk",)}
    assert after(doubled.randomize["mass_scale"]) == {"of": ("trunk",)}  # a factor has no unit
    assert "contact_friction" not in doubled.randomize


def test_ranges_for_named_parts_of_the_other_robot_are_for_all_parts_here(small, large):
    ranges = {"kp": Draw(operation="scale", low=0.9, high=1.1, of=("FL_hip_joint",))}
    scaled = scale_task(replace(TASK, randomize=ranges), GO2, Laws(small, large), ALIKE)
    assert after(scaled.randomize["kp"]) == {"of": None}


def test_gains_grow_with_the_moment_of_the_weight(doubled):
    made = after(doubled.servo)
    assert made["kp"] == pytest.approx(16 * GO2.spec.kp[0], rel=5e-3)
    assert made["kd"] == pytest.approx(16 * ROOT * GO2.spec.kd[0], rel=2e-2)
    assert doubled.physics.after == 200.0


def test_actions_are_angles_and_keep_their_scale(doubled):
    assert after(doubled.actions) == {"scale": 0.25}


def test_speeds_keep_their_numbers_unless_asked_to_follow_the_legs(doubled, small, large):
    assert doubled.goal == ()
    made = after(scale_task(TASK, GO2, Laws(small, large, "froude"), ALIKE).goal)
    assert made["forward"] == pytest.approx((-1.41, 1.41))
    assert made["sideways"] == pytest.approx((-0.707, 0.707))
    assert made["turn"] == pytest.approx((-0.707, 0.707))
    assert made["small"] == pytest.approx(0.141)
    assert made["rate"] == pytest.approx((4.0, 4.0, 4.0))  # m/s^2 as gravity, rad/s^2 half


def test_a_reward_of_unknown_unit_keeps_its_weight_and_says_so(small, large):
    task = replace(TASK, rewards=dict(TASK.rewards) | {"mine": Reward(lambda frame: frame.base_height, 0.7)})
    reward = scale_task(task, GO2, Laws(small, large), ALIKE).rewards["mine"]
    assert (reward.weight.after, reward.term.code) == (0.7, None)
    assert "unknown" in reward.weight.why


def test_scales_of_each_joint_are_given_by_kind(small, large):
    scales = tuple({"hip": 0.1, "thigh": 0.2, "calf": 0.3}[name.split("_")[1]] for name in GO2.spec.joint_names)
    task = replace(TASK, actions=replace(TASK.actions, scale=scales))
    assert after(scale_task(task, GO2, Laws(small, large), ALIKE).actions)["scale"] == scales


@pytest.mark.parametrize("name", [task.name for task in described_tasks() if not task.scalable])
def test_only_walking_speeds_can_be_scaled(name):
    with pytest.raises(TrueupError, match=f"{name}.*cannot be scaled.*go2-velocity"):
        require_scalable(load_task(name))


# --- the servo ---
def test_stiffer_legs_are_damped_by_the_root_of_their_stiffness():
    laws = Laws(figures(), figures())
    plain, stiff = (scale_servo(Rates(), laws, stiffer).gains[None] for stiffer in (1.0, 4.0))
    assert stiff.kp == pytest.approx(4 * plain.kp)
    assert stiff.kd + stiff.damping == pytest.approx(2 * (plain.kd + plain.damping), rel=1e-2)
    assert stiff.ratio == plain.ratio == pytest.approx(0.6 / (2 * np.sqrt(30.0 * 0.02)))


def test_a_servo_keeps_a_tenth_of_the_damping_however_stiff_the_joints_own():
    joints = {name: one._replace(damping=5.0) for name, one in figures().joints.items()}
    made = scale_servo(Rates(), Laws(figures(), figures(joints=joints))).gains[None]
    assert made.kd == pytest.approx(0.06)  # of 0.5 + 0.1 in the reference


def test_the_physics_rate_rises_in_whole_steps_of_control_until_the_spring_is_slow_enough():
    light = figures(lightest=30.0 / (0.4 * 320.0) ** 2)  # sqrt(kp/I) dt = 0.4 at 320 Hz
    made = scale_servo(Rates(control_hz=50.0, physics_hz=200.0), Laws(figures(), light))
    assert (made.physics_hz, made.bound) == (350.0, "")
    assert made.gains[None].kp == 30.0


def test_joints_outside_the_legs_keep_their_own_gains():
    spec, scaled = GO2.spec, scale_servo(Rates(), Laws(figures(), figures()))
    made = give_servo(scaled, GO2, figures(others=spec.joint_names[:2]))
    assert made.kp[:3] == (spec.kp[0], spec.kp[1], 30.0)
    assert made.kd[:3] == (spec.kd[0], spec.kd[1], 0.5)
    assert give_servo(scaled, GO2, figures()).kp == 30.0


# --- figures ---
def test_figures_of_go2_are_those_of_its_geometry(small):
    pose = dict(zip(GO2.spec.joint_names, GO2.spec.default_pose, strict=True))
    lengths = []
    for leg in ("FL", "FR", "RL", "RR"):  # thighs and calves in a plane that the hip tilts, and a ball at the end
        hip, thigh, calf = (pose[f"{leg}_{part}_joint"] for part in ("hip", "thigh", "calf"))
        plane = 0.213 * np.cos(thigh) + 0.213 * np.cos(thigh + calf) - 0.002 * np.sin(thigh + calf)
        lengths.append(np.cos(hip) * plane + 0.022)
    assert small.leg == pytest.approx(np.mean(lengths), abs=1e-4)
    assert [small.joints[f"RR_{part}_joint"].kind for part in ("hip", "thigh", "calf")] == [2, 1, 0]
    assert (small.feet, small.others, small.forward, small.diagonal, small.trunk) == (4, (), True, True, True)
    assert small.weakest_nm == GO2.spec.torque_limit.min()
    assert small.moment == pytest.approx(small.mass * GRAVITY * small.leg)


def test_the_froude_number_of_a_speed_falls_with_the_legs():
    assert figures(leg=0.3).froude(1.0) == pytest.approx(1.0 / (9.81 * 0.3))
    assert figures(leg=0.6).froude(ROOT) == pytest.approx(figures(leg=0.3).froude(1.0))
    assert figures(leg=9.81).time == pytest.approx(1.0)


def test_feet_in_another_order_are_noticed():
    left, right, rear_left, rear_right = GO2.spec.feet
    spec = msgspec.structs.replace(GO2.spec, feet=(left, rear_right, right, rear_left))
    assert not measure(replace(GO2, spec=spec)).diagonal


def test_a_robot_that_does_not_stand_is_told_what_it_lacks():
    base = msgspec.structs.replace(GO2.spec.base, stand_height=0.0)
    lying = replace(GO2, spec=msgspec.structs.replace(GO2.spec, base=base))
    with pytest.raises(TrueupError, match="'go2' cannot take.*does not stand"):
        measure(lying)


# --- the file ---
def written(scaled, folder: Path, mirror=None) -> tuple[str, str]:
    text = task_source(scaled, name="2go-velocity", like="go2-velocity", robot='"go2"', mirror=mirror)
    (folder / "task.py").write_text(text)
    return text, f"{folder / 'task.py'}:{function_name('2go-velocity')}"


def test_the_file_makes_a_task_with_the_scaled_numbers(doubled, tmp_path):
    text, call = written(doubled, tmp_path)
    task = load_task(call)
    assert (task.name, task.robot) == ("2go-velocity", "go2")
    for name, reward in doubled.rewards.items():
        assert task.rewards[name].weight == reward.weight.after
        assert task.rewards[name].late == reward.late
    assert task.rewards["clearance"].function.target_m == 0.16
    assert (task.pushes.newton, task.pushes.every_s) == (640.0, TASK.pushes.every_s)
    assert task.randomize["payload"].high == 16.0
    assert task.randomize["contact_friction"] == TASK.randomize["contact_friction"]
    assert (task.servo.kp, task.goal, task.symmetric) == (doubled.servo[0].after, TASK.goal, True)
    assert "import Path" not in text
    assert "was 80.0; ~ m g" in text  # each number has its reason beside it


def test_a_robot_without_a_mirror_learns_without_one(doubled, tmp_path):
    text, call = written(doubled, tmp_path, mirror="no mirror for 'tail'")
    task = load_task(call)
    assert not task.symmetric
    assert not task.learner.symmetry
    assert "# no mirror for 'tail'" in text


def test_a_reward_of_ones_own_is_taken_from_the_task_it_came_with(small, large, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import replace\n"
        "from trueup.tasks.load import load_task\nfrom trueup.tasks.task import Reward\n"
        "def glide(frame):\n    return frame.base_vel[:, 0]\n"
        "def mine():\n    task = load_task('go2-velocity')\n"
        "    return replace(task, rewards={**task.rewards, 'glide': Reward(glide, 0.3)})\n"
    )
    like = f"{tmp_path / 'mine.py'}:mine"
    scaled = scale_task(load_task(like), GO2, Laws(small, large), ALIKE)
    text = task_source(scaled, name="b", like=like, robot='"go2"', mirror=None)
    (tmp_path / "b.py").write_text(text)
    reward = load_task(f"{tmp_path / 'b.py'}:b").rewards["glide"]
    assert (reward.function.__name__, reward.weight) == ("glide", 0.3)


@pytest.mark.parametrize(("name", "function"), [("b2-velocity", "b2_velocity"), ("3d dog", "_3d_dog")])
def test_a_tasks_name_becomes_that_of_a_function(name, function):
    assert function_name(name) == function
    assert function.isidentifier()
