"""A task for another robot: laws checked by hand, and robots of others that stand by what is written for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from foreign_robots import locate
from made_figures import figures

from trueup.core.errors import TrueupError
from trueup.robot.drafts.init import init_robot
from trueup.robot.load import ZOO, Robot, load_robot
from trueup.tasks.build import with_servo
from trueup.tasks.load import EnvCfg, described_tasks, load_task, make_env
from trueup.tasks.similar.figures import RobotFigures, measure
from trueup.tasks.similar.init import init_task
from trueup.tasks.similar.laws import LENGTH, POWER, SPEED, TERMS, TORQUE, Laws, unit_of
from trueup.tasks.similar.scale import scale_task, scale_term
from trueup.tasks.similar.servo import SettledServo, scale_servo, settle
from trueup.tasks.task import Rates, Start
from trueup.tasks.terms import rewards as r

GO2 = "go2-velocity"


def grown(mass: float, length: float, reference: RobotFigures) -> RobotFigures:
    """The same robot at another scale: everything follows the laws."""
    torque, time = mass * length, length**0.5
    joints = {
        name: joint._replace(
            torque=joint.torque * torque,
            inertia=joint.inertia * mass * length**2,
            damping=joint.damping * torque * time,
        )
        for name, joint in reference.joints.items()
    }
    return replace(
        reference,
        name="b",
        mass=reference.mass * mass,
        leg=reference.leg * length,
        stand_height=reference.stand_height * length,
        lightest=reference.lightest * mass * length**2,
        joints=joints,
    )


def test_ratios_follow_mass_and_leg_length() -> None:
    laws = Laws(figures(), figures(mass=40.0, leg=0.6))
    assert laws.ratio(LENGTH) == pytest.approx(2.0)
    assert laws.ratio(SPEED) == pytest.approx(2.0**0.5)
    assert laws.ratio(TORQUE) == pytest.approx(8.0)
    assert laws.ratio(POWER) == pytest.approx(4.0 * 2.0**0.5)
    assert laws.asked(SPEED) == 1.0
    assert replace(laws, speeds="froude").asked(SPEED) == pytest.approx(2.0**0.5)


def test_a_similar_robot_gets_similar_gains() -> None:
    reference, mass, length = figures(), 5.0, 1.5
    servo = scale_servo(Rates(), Laws(reference, grown(mass, length, reference)))
    gains = servo.gains[None]
    assert gains.kp == pytest.approx(30.0 * mass * length, rel=1e-2)
    assert gains.kd == pytest.approx(0.5 * mass * length * length**0.5, rel=1e-2)
    assert (servo.physics_hz, servo.bound) == (200.0, "")


def test_legs_that_are_bent_more_get_stiffer_joints() -> None:
    """Crouched as in the keyframes of many models, go2 needs stiffer knees to keep its share of the height."""
    task = load_task(GO2)
    robot = with_servo(load_robot("go2"), task.servo)
    upright = settle(task.rates, robot, robot, Laws(measure(robot), measure(robot)))
    assert upright.stiffer == 1.0
    assert upright.share == pytest.approx(upright.reference)
    low = crouched(robot)
    settled = settle(task.rates, robot, low, Laws(measure(robot), measure(low)))
    assert settled.stiffer > 1.2
    assert settled.share > upright.share - 0.02


def crouched(robot: Robot) -> Robot:
    pose = {"thigh": 0.9, "calf": -1.8}
    joints = tuple(
        msgspec.structs.replace(joint, default=pose.get(joint.name.split("_")[1], 0.0)) for joint in robot.spec.joints
    )
    spec = msgspec.structs.replace(robot.spec, joints=joints)
    height = 0.213 * 2 * np.cos(0.9) + 0.022
    return replace(
        robot, spec=msgspec.structs.replace(spec, base=msgspec.structs.replace(spec.base, stand_height=height))
    )


def test_own_damping_of_the_joints_counts() -> None:
    reference = figures()
    heavy = {name: joint._replace(damping=0.4) for name, joint in reference.joints.items()}
    assert scale_servo(Rates(), Laws(reference, figures(joints=heavy))).gains[None].kd == pytest.approx(0.2)


def test_weak_motors_and_light_joints_bound_the_stiffness() -> None:
    reference = figures()
    weak = {name: joint._replace(torque=2.0) for name, joint in reference.joints.items()}
    servo = scale_servo(Rates(), Laws(reference, figures(joints=weak)))
    assert servo.gains[None].kp == pytest.approx(30.0 * 4.0 * 2.0 / 20.0)
    assert "motors" in servo.bound
    light = scale_servo(Rates(), Laws(reference, figures(lightest=1e-4)))
    assert light.physics_hz == 500.0
    assert (light.gains[None].kp / 1e-4) ** 0.5 / light.physics_hz == pytest.approx(0.4, rel=1e-2)
    assert "light joints" in light.bound


def test_gains_of_each_joint_are_scaled_by_kind() -> None:
    joints = {name: joint._replace(kp=(30.0, 20.0, 10.0)[joint.kind]) for name, joint in figures().joints.items()}
    reference = figures(joints=joints)
    servo = scale_servo(Rates(), Laws(reference, grown(2.0, 1.0, reference)))
    assert {kind: gains.kp for kind, gains in servo.gains.items()} == {0: 60.0, 1: 40.0, 2: 20.0}


@dataclass(frozen=True)
class Reach:
    """Of this test, not of the rewards."""

    span_m: float


def test_numbers_of_reward_terms_are_scaled_by_the_unit_in_their_names() -> None:
    laws = Laws(figures(), figures(mass=40.0, leg=0.6))
    term = scale_term(r.AirTime(0.2, 0.5), laws)
    assert term.code == "r.AirTime(least_s=0.283, most_s=0.707)"
    assert scale_term(r.Clearance(0.08), laws).code == "r.Clearance(target_m=0.16)"
    assert scale_term(r.energy, laws).code == "r.energy"
    assert scale_term(Reach(1.0), laws).code is None
    assert unit_of("width_m_s") == SPEED
    assert not unit_of("share").law


def test_every_reward_of_the_tasks_that_scale_has_a_unit() -> None:
    laws = Laws(figures(), figures())
    scalable = [task.name for task in described_tasks() if task.scalable]
    assert "go2-velocity" in scalable
    assert "g1-velocity" not in scalable  # terms of its own name joints
    for name in scalable:
        for reward in load_task(name).rewards.values():
            term = scale_term(reward.function, laws)
            assert term.code is not None, term.name
            assert term.name in TERMS


def test_a_robot_like_the_reference_keeps_every_number() -> None:
    robot, task = load_robot("go2"), load_task(GO2)
    same = measure(robot)
    scaled = scale_task(task, robot, Laws(same, same), SettledServo(1.0, 0.8, 0.8))
    numbers = [scaled.physics, *scaled.servo, *scaled.actions, *scaled.start, *scaled.pushes]
    numbers += [number for part in scaled.randomize.values() for number in part]
    numbers += [reward.weight for reward in scaled.rewards.values()]
    numbers += [argument for reward in scaled.rewards.values() for argument in reward.term.arguments]
    for number in numbers:
        if number.name == "of":
            assert number.after == number.before
        else:
            assert number.after == pytest.approx(number.before, rel=1e-2), number.name


def test_an_arm_is_told_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match=r"'z1'.*bolted down.*names no feet"):
        init_task("z1", GO2, tmp_path / "t.py")
    with pytest.raises(TrueupError, match="'z1-reach' cannot be scaled.*go2-velocity"):
        init_task("go2", "z1-reach", tmp_path / "t.py")
    assert not (tmp_path / "t.py").exists()


def test_files_are_not_written_over_by_chance(tmp_path: Path) -> None:
    out = tmp_path / "mine.py"
    out.write_text("# mine\n")
    with pytest.raises(TrueupError, match="exists"):
        init_task("go2", GO2, out)
    with pytest.raises(TrueupError, match=r"\.py"):
        init_task("go2", GO2, tmp_path / "mine.txt")
    assert out.read_text() == "# mine\n"
    assert init_task("go2", GO2, out, force=True).call == f"{out}:go2_velocity"


def test_speeds_go_with_legs_if_asked() -> None:
    task, alike = load_task(GO2), SettledServo(1.0, 0.8, 0.8)
    reference = measure(load_robot("go2"))
    small = replace(reference, leg=reference.leg / 4.0, name="small")
    scaled = scale_task(task, load_robot("go2"), Laws(reference, small, "froude"), alike)
    after = {number.name: number.after for number in scaled.goal}
    assert after["forward"] == pytest.approx((-0.5, 0.5))
    assert after["turn"] == pytest.approx((-2.0, 2.0))
    assert scale_task(task, load_robot("go2"), Laws(reference, small), alike).goal == ()


# --- robots of others ---
QUADRUPEDS = (
    "b2", "go1", "a1", "spot", "aliengo", "mini_cheetah", "pegasus", "hyqreal2", "solo12", "anymal_b", "laikago",
)  # fmt: skip


@pytest.mark.medium
@pytest.mark.parametrize("name", QUADRUPEDS)
def test_a_foreign_quadruped_stands_by_two_commands(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`robot init` and `task init`: random actions stay finite, zero actions hold it up for 5 s."""
    path, root = locate(name)
    init_robot(path, tmp_path / "robot", root=root)
    done = init_task(tmp_path / "robot", GO2, tmp_path / "task.py")
    monkeypatch.chdir("/")  # the file finds its robot from anywhere
    task = load_task(done.call)
    rng = np.random.default_rng(0)
    env = make_env(task, EnvCfg(nenv=4, threads=1, seed=0))
    for _ in range(200):
        step = env.step(rng.normal(0.0, 0.5, (4, env.naction)).astype(np.float32))
        assert np.isfinite(step.reward).all()
        assert np.isfinite(step.obs.critic).all()
    assert env.mirror is not None
    quiet = EnvCfg(nenv=1, threads=1, randomize=False, pushes=False, stagger=False)
    env = make_env(replace(task, start=Start()), quiet)
    for _ in range(round(5.0 / env.control_dt)):
        assert not env.step(np.zeros((1, env.naction), np.float32)).terminated.any()
    frame, spec = env._sense.frame, env.robot.spec
    assert frame.base_height.min() > 0.7 * spec.base.stand_height
    assert frame.foot_contact.mean() > 0.7
    assert np.abs(frame.base_vel).max() < 0.3


@pytest.mark.medium
def test_joints_that_are_not_in_legs_hold_still(tmp_path: Path) -> None:
    """go2 with an arm: the policy moves the legs, the arm keeps its own gains."""
    text = (ZOO / "go2" / "model.xml").read_text()
    arm = (
        '<body name="arm" pos="0 0 0.1"><inertial pos="0 0 0.1" mass="0.5" diaginertia="0.002 0.002 0.002"/>'
        '<joint name="arm_lift" axis="0 1 0" range="-1 1"/></body>'
    )
    (tmp_path / "dog.xml").write_text(text.replace('<body name="FL_hip"', arm + '<body name="FL_hip"', 1))
    init_robot(tmp_path / "dog.xml", tmp_path / "dog")
    done = init_task(tmp_path / "dog", GO2, tmp_path / "task.py")
    task = load_task(done.call)
    assert task.actions.controlled_joints is not None
    assert "arm_lift" not in task.actions.controlled_joints
    env = make_env(task, EnvCfg(nenv=1, threads=1))
    own = load_robot(tmp_path / "dog").spec
    at = own.joint_names.index("arm_lift")
    assert env.robot.spec.kp[at] == own.kp[at]
    assert env.naction == 12
    assert env.mirror is not None
    assert any("arm_lift" in caution for caution in done.cautions)
