"""The mirror, checked against the physics: a mirrored state under mirrored actions stays the mirror image."""

import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.action import ActionMap
from trueup.robot.load import ZOO, load_robot
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.tasks.sensing.mirror import pair_limbs
from trueup.world.batch import BatchSim, SimCfg

pytestmark = pytest.mark.medium
_BODY = np.array([1, -1, 1, 1, -1, 1, -1.0])  # position x y z, quaternion w x y z
_MOTION = np.array([1, -1, 1, -1, 1, -1.0])


def mirrored(env, values, head):
    """qpos or qvel mirrored: the base's part by `head`, the joints by their pairs."""
    joints, _ = pair_limbs(env.sim)
    return np.concatenate(
        [values[:, : len(head)] * head, values[:, len(head) :][:, joints.columns] * joints.sign], axis=1
    )


@pytest.fixture(params=["go2-velocity", "g1-velocity"])
def env(request):
    return make_env(load_task(request.param), EnvCfg(nenv=2, threads=1, seed=5, randomize=False, pushes=False))


def test_mirroring_twice_gives_back_what_was(env):
    for index, sign in zip(env.mirror[::2], env.mirror[1::2], strict=True):
        np.testing.assert_array_equal(index[index], np.arange(len(index)))
        np.testing.assert_array_equal(sign * sign[index], 1.0)
    assert len(env.mirror.actor_index) == env.nactor
    assert len(env.mirror.critic_index) == env.ncritic


def test_mirrored_state_and_action_give_the_mirrored_next_state(env):
    sim, rng = env.sim, np.random.default_rng(0)
    qpos, qvel = sim.qpos[:1].copy(), sim.qvel[:1].copy()
    qvel += rng.normal(0.0, 0.3, qvel.shape)
    sim.reset(
        qpos=np.concatenate([qpos, mirrored(env, qpos, _BODY)]),
        qvel=np.concatenate([qvel, mirrored(env, qvel, _MOTION)]),
    )
    mapping = ActionMap(msgspec.structs.replace(env.action_spec, cycle=None))
    for _ in range(10):
        action = rng.normal(0.0, 0.4, (1, env.naction)).astype(np.float32)
        other = action[:, env.mirror.action_index] * env.mirror.action_sign
        sim.step(mapping.target(np.concatenate([action, other])))
    np.testing.assert_allclose(sim.qpos[1:], mirrored(env, sim.qpos[:1], _BODY), atol=2e-3)
    np.testing.assert_allclose(sim.qvel[1:], mirrored(env, sim.qvel[:1], _MOTION), atol=0.1)


def test_observations_of_mirror_images_are_mirror_images(env):
    sim, rng = env.sim, np.random.default_rng(1)
    qpos, qvel = sim.qpos[:1].copy(), sim.qvel[:1].copy()
    qvel += rng.normal(0.0, 0.3, qvel.shape)
    sim.qpos[:] = np.concatenate([qpos, mirrored(env, qpos, _BODY)])
    sim.qvel[:] = np.concatenate([qvel, mirrored(env, qvel, _MOTION)])
    sim.batch.forward()
    sim.sensors._sigma[:] = 0.0
    sim.sensors.sample()
    command = np.array([[0.5, 0.2, -0.3], [0.5, -0.2, 0.3]], np.float32)
    frame = env._sense.read(command)
    action = rng.normal(0.0, 0.5, (1, env.naction)).astype(np.float32)
    frame.action[:] = np.concatenate([action, action[:, env.mirror.action_index] * env.mirror.action_sign])
    phase = np.array([0.2, 0.7])  # the image is half a period of the clock ahead
    newest = env._builder.frame(env._reading(), command, frame.action, phase)
    actor = env._builder.history.fill(newest)  # the past is as the present
    critic = env._critic(actor, None)
    for values, index, sign in (
        (actor, env.mirror.actor_index, env.mirror.actor_sign),
        (critic, env.mirror.critic_index, env.mirror.critic_sign),
    ):
        np.testing.assert_allclose(values[1], values[0, index] * sign, atol=1e-3)


def test_sides_of_a_humanoid_are_exchanged_and_its_waist_stays():
    robot = load_robot("g1")
    joints, feet = pair_limbs(BatchSim(robot, SimCfg(nsim=1, threads=1)))
    names, swap = robot.spec.joint_names, {"left": "right", "right": "left"}
    mates = [re.sub("left|right", lambda side: swap[side[0]], name) for name in names]
    assert [names[k] for k in joints.columns] == mates
    np.testing.assert_array_equal(
        joints.sign, [1 if "pitch" in name or name[-11:-6] in ("_knee", "elbow") else -1 for name in names]
    )
    np.testing.assert_array_equal(feet.columns, [1, 0])


def renamed(folder, change):
    """go2 with the names of its legs exchanged for others, axes of the right knees turned about."""
    for file in ("model.xml", "spec.toml"):
        text = (ZOO / "go2" / file).read_text()
        for name in ("FL", "FR", "RL", "RR"):
            text = text.replace(f"{name}_", change[name])
        (folder / file).write_text(text)
    return load_robot(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"FL": "LF_", "FR": "RF_", "RL": "LH_", "RR": "RH_"},
        {"FL": "front_left_", "FR": "front_right_", "RL": "rear_left_", "RR": "rear_right_"},
        {"FL": "fl.", "FR": "fr.", "RL": "hl.", "RR": "hr."},
        {"FL": "leg0_", "FR": "leg1_", "RL": "leg2_", "RR": "leg3_"},
        {"FL": "L_front_", "FR": "R_front_", "RL": "L_rear_", "RR": "R_rear_"},
        {"FL": "left_", "FR": "right_", "RL": "left_hind_", "RR": "right_hind_"},  # left_hip, right_hip
    ],
)
def test_limbs_are_paired_whatever_their_names(change, tmp_path):
    check_pairs(renamed(tmp_path, change))


def test_limbs_are_paired_by_names_that_end_in_the_side(tmp_path):
    for file in ("model.xml", "spec.toml"):
        text = (ZOO / "go2" / file).read_text()
        for name, side in {"FL": "f_l", "FR": "f_r", "RL": "h_l", "RR": "h_r"}.items():
            text = re.sub(rf"\b{name}_(\w+)", rf"\1_{side}", text)
        (tmp_path / file).write_text(text)
    robot = load_robot(tmp_path)
    assert robot.spec.joint_names[0] == "hip_joint_f_l"
    check_pairs(robot)


def check_pairs(robot):
    joints, feet = pair_limbs(BatchSim(robot, SimCfg(nsim=1, threads=1)))
    expected = pair_limbs(BatchSim(load_robot("go2"), SimCfg(nsim=1, threads=1)))
    for found, known in zip((joints, feet), expected, strict=True):
        np.testing.assert_array_equal(found.columns, known.columns)
        np.testing.assert_array_equal(found.sign, known.sign)
    np.testing.assert_array_equal(feet.columns, [1, 0, 3, 2])
    np.testing.assert_array_equal(joints.sign[:3], [-1, 1, 1])


def test_axes_that_point_the_other_way_turn_the_sign(tmp_path):
    text = (ZOO / "go2" / "model.xml").read_text()
    at = text.index('name="FR_calf_joint"')
    (tmp_path / "model.xml").write_text(text[:at] + text[at:].replace('axis="0 1 0"', 'axis="0 -1 0"', 1))
    spec = load_robot("go2").spec
    knee = spec.joint_names.index("FR_calf_joint")
    joint = spec.joints[knee]
    turned = msgspec.structs.replace(joint, position=(-joint.position[1], -joint.position[0]), default=-joint.default)
    spec = msgspec.structs.replace(spec, joints=(*spec.joints[:knee], turned, *spec.joints[knee + 1 :]))
    robot = replace(load_robot("go2"), spec=spec, model_path=tmp_path / "model.xml")
    joints, _ = pair_limbs(BatchSim(robot, SimCfg(nsim=1, threads=1)))
    assert joints.sign[knee] == -1
    assert joints.sign[spec.joint_names.index("RR_calf_joint")] == 1


def test_a_pose_that_is_no_mirror_image_is_told():
    robot = load_robot("go2")
    joints = (msgspec.structs.replace(robot.spec.joints[0], default=0.3), *robot.spec.joints[1:])
    lame = replace(robot, spec=msgspec.structs.replace(robot.spec, joints=joints))
    with pytest.raises(TrueupError, match="no mirror.*symmetric=False"):
        pair_limbs(BatchSim(lame, SimCfg(nsim=1, threads=1)))
