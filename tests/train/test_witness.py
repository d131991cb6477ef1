"""Policies of others in our environments: joints matched by name, numbers at their place, figures that are known."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from trueup.core.errors import TrueupError
from trueup.policy.foreign.layout import read_layout
from trueup.policy.foreign.onnx_net import OnnxNet
from trueup.robot.load import ZOO, load_robot
from trueup.tasks.foreign import with_layout
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.train.play.witness import assess_witness, open_witness
from trueup.world.sensors import SensorCfg

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "policies"
POLICIES = Path(os.environ.get("TRUEUP_POLICIES", BESIDE))
needs_policies = pytest.mark.skipif(not POLICIES.is_dir(), reason="no policies of others (TRUEUP_POLICIES)")
QUIET = EnvCfg(nenv=3, threads=1, randomize=False, pushes=False, stagger=False)
LEGS = ("FR", "FL", "RR", "RL")
NAMES = [f"{leg}_{part}_joint" for leg in LEGS for part in ("hip", "thigh", "calf")]
POSE = [0.0, 0.8, -1.5] * 4
SCALE = [0.1 + 0.01 * k for k in range(12)]


def write_layout(folder, **changes):
    """rl_sar's files of a go2 whose policy begins with the right legs, like most of its kind."""
    base = {"dt": 0.005, "decimation": 4, "num_of_dofs": 12, "joint_names": NAMES}
    config = {
        "num_observations": 45,
        "observations": ["ang_vel", "gravity_vec", "commands", "dof_pos", "dof_vel", "actions"],
        "clip_obs": 100.0,
        "clip_actions_lower": [-2.0] * 12,
        "clip_actions_upper": [2.0] * 12,
        "rl_kp": [20.0 + k for k in range(12)],
        "rl_kd": [0.5] * 12,
        "action_scale": SCALE,
        "ang_vel_scale": 0.25,
        "dof_vel_scale": 0.05,
        "default_dof_pos": POSE,
        "joint_mapping": list(range(12)),
    }
    (folder / "base.yaml").write_text(yaml.safe_dump({"go2": base}))
    (folder / "config.yaml").write_text(yaml.safe_dump({"go2/made": config | changes}))
    return folder / "config.yaml"


def write_net(path, nobs=45):
    """Action k is column 9 + k of the observation (the position of the policy's joint k) times 10."""
    weight = np.zeros((nobs, 12), np.float32)
    weight[np.arange(9, 21), np.arange(12)] = 10.0
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["obs", "weight"], ["actions"])],
        "linear",
        [helper.make_tensor_value_info("obs", floats, ["batch", nobs])],
        [helper.make_tensor_value_info("actions", floats, ["batch", 12])],
        [numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)
    return path


def test_gains_rate_and_pose_are_the_policys_the_rest_is_the_tasks(tmp_path):
    task = load_task("go2-velocity")
    layout = read_layout(write_layout(tmp_path, rl_kd=[0.1 * k for k in range(12)]))
    env = make_env(with_layout(task, layout), QUIET)
    names = env.robot.spec.joint_names
    assert env.robot.spec.kp[names.index("FL_hip_joint")] == 23.0  # the policy's fourth
    assert env.robot.spec.kd[names.index("RL_calf_joint")] == pytest.approx(1.1)  # its last
    assert env.control_dt == pytest.approx(0.02)
    assert env.sim.model.opt.timestep == pytest.approx(0.005)
    eased = load_task("go2-velocity").goal.rate
    assert env.observation_spec.command_step == pytest.approx([rate * env.control_dt for rate in eased])
    assert env.policy_spec().kp == tuple(20.0 + k for k in range(12))
    assert env.task.terminations == task.terminations


def test_observations_and_targets_meet_the_right_joints(tmp_path):
    task = replace(load_task("go2-velocity"), sensors=SensorCfg())
    env, policy = open_witness(write_net(tmp_path / "net.onnx"), write_layout(tmp_path), task, QUIET)
    robot = env.robot.spec.joint_names
    obs = env.reset()
    for k, name in enumerate(NAMES):
        expected = env.sim.joint_pos[:, robot.index(name)] - POSE[k]
        np.testing.assert_allclose(obs.actor[:, 9 + k], expected, atol=1e-6)
    action = policy(obs)
    np.testing.assert_allclose(action, 10.0 * obs.actor[:, 9:21], rtol=1e-5)
    obs = env.step(action).obs
    clipped = np.clip(action, -2.0, 2.0)
    assert (np.abs(action) > 2.0).any()
    for k, name in enumerate(NAMES):
        np.testing.assert_allclose(env._target[:, robot.index(name)], POSE[k] + SCALE[k] * clipped[:, k], atol=1e-6)
        expected = 0.05 * env.sim.joint_vel[:, robot.index(name)]
        np.testing.assert_allclose(obs.actor[:, 21 + k], expected, atol=1e-5)
    np.testing.assert_allclose(obs.actor[:, 33:], clipped, atol=1e-6)
    np.testing.assert_allclose(obs.actor[:, 6:9], env._builder.command)


def test_a_layout_with_another_joint_or_width_is_refused_by_name(tmp_path):
    net = write_net(tmp_path / "net.onnx")
    narrow = write_layout(
        tmp_path, observations=["ang_vel", "gravity_vec", "commands", "dof_pos", "dof_vel"], num_observations=33
    )
    with pytest.raises(TrueupError, match="net.onnx: has 45 observations, but layout 'go2/made' has 33"):
        open_witness(net, narrow, "go2-velocity", QUIET)
    base = tmp_path / "base.yaml"
    whole = write_layout(tmp_path)
    base.write_text(base.read_text().replace("RL_calf_joint", "RL_knee_joint"))
    with pytest.raises(TrueupError, match="RL_calf_joint, RL_knee_joint"):
        open_witness(net, whole, "go2-velocity", QUIET)


def test_what_a_task_does_not_have_is_named(tmp_path):
    tracking = ["whole_body_tracking/motion_command", "commands"]
    layout = read_layout(write_layout(tmp_path, observations=tracking, num_observations=27))
    with pytest.raises(TrueupError, match="follows a motion"):
        with_layout(load_task("go2-velocity"), layout)
    with pytest.raises(TrueupError, match="different joints"):
        with_layout(load_task("z1-reach"), layout)


def test_another_rate_keeps_the_physics_at_least_as_fine(tmp_path):
    layout = read_layout(write_layout(tmp_path))
    for hz, physics in ((50.0, 200.0), (60.0, 240.0), (400.0, 400.0)):
        task = with_layout(load_task("go2-velocity"), msgspec.structs.replace(layout, control_hz=hz))
        assert (task.rates.control_hz, task.rates.physics_hz) == (hz, physics)


@pytest.mark.medium
def test_a_witness_is_assessed_like_our_own(tmp_path):
    result = assess_witness(
        write_net(tmp_path / "net.onnx"), write_layout(tmp_path), "go2-velocity", episodes=2, seconds=1.0
    )
    assert result.episodes == 2
    assert result.power_w > 0.0
    assert result.turn_error is not None


def test_the_command_line_asks_for_what_a_network_needs():
    from trueup.train.play.verbs import PlayVerb, run

    with pytest.raises(TrueupError, match="--onnx with --layout and --task"):
        run(PlayVerb(onnx=Path("net.onnx")))


def write_deploy(folder):
    """deploy.yaml of a G1: the policy's joints go left, right, left, ... as Isaac's breadth-first order does."""
    ids = [0, 6, 12, 1, 7, 13, 2, 8, 14, 3, 9, 15, 22, 4, 10, 16, 23, 5, 11, 17, 24, 18, 25, 19, 26, 20, 27, 21, 28]
    term = {"params": {}, "clip": None, "history_length": 2}
    ranges = {"lin_vel_x": [-0.5, 1.0], "lin_vel_y": [-0.3, 0.3], "ang_vel_z": [-0.2, 0.2]}
    written = {
        "joint_ids_map": ids,
        "step_dt": 0.02,
        "stiffness": [100.0 + k for k in range(29)],
        "damping": [1.0 + k for k in range(29)],
        "default_joint_pos": [0.01 * k for k in range(29)],
        "commands": {"base_velocity": {"ranges": ranges}},
        "actions": {"JointPositionAction": {"clip": None, "scale": 0.25, "offset": 0.0}},
        "observations": dict.fromkeys(("base_ang_vel", "velocity_commands", "joint_pos_rel", "last_action"), term),
    }
    (folder / "deploy.yaml").write_text(yaml.safe_dump(written, sort_keys=False))
    return folder / "deploy.yaml", ids


def test_a_humanoids_layout_by_numbers_meets_the_right_joints(tmp_path):
    file, ids = write_deploy(tmp_path)
    names = load_robot("g1").spec.joint_names
    layout = read_layout(file, joint_names=names)
    task = with_layout(replace(load_task("g1-velocity"), sensors=SensorCfg()), layout)
    env = make_env(task, QUIET)
    np.testing.assert_array_equal(env.robot.spec.kp, 100.0 + np.arange(29))  # lists of gains are the SDK's
    np.testing.assert_array_equal(env.robot.spec.kd, 1.0 + np.arange(29))
    seen = env.reset().actor  # two frames of gyro and command, then of joints
    expected = env.sim.joint_pos[:, ids] - 0.01 * np.arange(29)
    np.testing.assert_allclose(seen[:, 12 : 12 + 29], expected, atol=1e-6)
    np.testing.assert_allclose(seen[:, 41 : 41 + 29], expected, atol=1e-6)
    env.step(np.tile(np.arange(29, dtype=np.float32), (3, 1)))
    np.testing.assert_allclose(env._target[:, ids], np.tile(0.25 * np.arange(29), (3, 1)), atol=1e-6)


@needs_policies
@pytest.mark.parametrize("folder", ["go2_robot_lab", "g1_dance_102", "g1_velocity"])
def test_public_policies_fit_their_layouts(folder):
    motors = yaml.safe_load((POLICIES / "g1_dance_102" / "base.yaml").read_text())["g1"]["joint_names"]
    file = next((POLICIES / folder).glob("[cd]*.yaml"))
    layout = read_layout(file, joint_names=tuple(motors) if file.name == "deploy.yaml" else ())
    net = OnnxNet(POLICIES / folder / "policy.onnx", 2)
    assert net.nobs == layout.observation.nactor
    assert net.naction == len(layout.action.controlled_joints)
    assert layout.control_hz == pytest.approx(50.0)
    if folder != "go2_robot_lab":  # Isaac's breadth-first order
        assert layout.joint_names[:3] == ("left_hip_pitch_joint", "right_hip_pitch_joint", "waist_yaw_joint")


@needs_policies
@pytest.mark.slow
def test_a_public_policy_walks_as_it_is_known_to(tmp_path):
    robot = shutil.copytree(ZOO / "go2", tmp_path / "go2")
    model = (robot / "model.xml").read_text()
    for part, armature, friction in (("hip", 0.005, 0.2), ("thigh", 0.005, 0.2), ("calf", 0.02, 0.5)):
        model = re.sub(
            rf'(\w\w_{part}_joint"[^>]*?)armature="[^"]*" damping="[^"]*" frictionloss="[^"]*"',
            rf'\1armature="{armature}" damping="0.2" frictionloss="{friction}"',
            model,
        )
    (robot / "model.xml").write_text(model)
    spec = (robot / "spec.toml").read_text().splitlines(keepends=True)  # that robot had neither
    (robot / "spec.toml").write_text("".join(s for s in spec if not s.startswith(("delay_s", "knee_speed"))))
    task = load_task("go2-velocity")
    goal = replace(task.goal, rate=(2.0, 2.0, 4.0))  # the pace of the published figures
    task = replace(task, robot=str(robot), goal=goal)
    folder = POLICIES / "go2_robot_lab"
    result = assess_witness(folder / "policy.onnx", folder / "config.yaml", task, episodes=100)
    assert result.falls <= 1
    assert result.error == pytest.approx(0.145, abs=0.02)
    assert result.turn_error == pytest.approx(0.197, abs=0.02)
    assert result.power_w == pytest.approx(82.0, abs=12.0)
    assert result.swing_m == pytest.approx(0.049, abs=0.006)
    assert result.metrics["flag/shuffling"] == pytest.approx(0.116, abs=0.03)


@needs_policies
@pytest.mark.medium
def test_a_public_policy_walks_in_our_humanoid():
    folder, task = POLICIES / "g1_velocity", load_task("g1-velocity")
    layout = read_layout(folder / "deploy.yaml", joint_names=load_robot("g1").spec.joint_names)
    task = replace(task, goal=replace(task.goal, turn=(-0.2, 0.2)))  # its own range
    result = assess_witness(folder / "policy.onnx", layout, task, episodes=20, seconds=10.0, threads=1)
    assert result.falls == 0
    assert result.error < 0.2
    assert result.turn_error < 0.12
    assert result.metrics["flag/hopping"] == 0.0
