"""Policies of others become bundles: each format with its own files, TorchScript, and what is asked for by name."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from made_bundles import make_net
from made_policies import save_graph
from onnx import TensorProto, helper, numpy_helper
from test_witness import NAMES, POLICIES, needs_policies

import trueup as tu
from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import load_bundle
from trueup.policy.bundle.robot_check import contradictions
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.robot.load import load_robot
from trueup.tasks.foreign import bundle_task, fitting_tasks, layout_of
from trueup.train.bundles.trial import try_onnx
from trueup.train.play.play import open_bundle

JOINTS = [f"{leg}_{part}_joint" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")]
LAYOUT = f"""
name = "toy"
control_hz = 50.0
joint_names = {JOINTS}
default_pose = {[0.0, 0.8, -1.5] * 4}
kp = 20.0
kd = 0.5
[action]
scale = 0.25
""" + "".join(
    f'\n[[observation]]\nsignal = "{name}"\n'
    for name in ("gyro", "gravity", "command", "joint_pos", "joint_vel", "action")
)


def weights(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 0.05, shape).astype(np.float32) for shape in ((45, 16), (16, 12))]


def save_mlp(path, metadata=None, *, batch="batch"):
    """actions = elu(obs W1) W2, small numbers: the robot stays about where it is."""
    first, second = weights()
    nodes = [
        helper.make_node("MatMul", ["obs", "w1"], ["h"]),
        helper.make_node("Elu", ["h"], ["e"]),
        helper.make_node("MatMul", ["e", "w2"], ["actions"]),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [batch, 45])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [batch, 12])],
        [numpy_helper.from_array(first, "w1"), numpy_helper.from_array(second, "w2")],
    )
    save_graph(path, graph)
    if metadata:
        model = onnx.load(path)
        helper.set_model_props(model, metadata)
        onnx.save(model, path)
    return path


@pytest.fixture
def net(tmp_path):
    return save_mlp(tmp_path / "policy.onnx")


@pytest.fixture
def layout(tmp_path):
    path = tmp_path / "layout.toml"
    path.write_text(LAYOUT)
    return path


def brought(net, tmp_path, **more):
    return tu.import_policy(net, robot="go2", out=tmp_path / "theirs.bundle", **({"seconds": 0.2} | more))


def test_a_layout_of_ours_imports_runs_and_plays(net, layout, tmp_path):
    done = brought(net, tmp_path, layout=layout)
    passport = done.bundle.passport
    assert done.parity["onnxruntime"] <= 1e-5
    assert (passport.policy.task, passport.origin.format) == ("go2-velocity", "trueup-layout")
    assert passport.joint_names == tuple(JOINTS)
    assert {key.split()[0] for key in passport.origin.files} == {"network", "layout"}
    assert any("go2-velocity: the built-in one that fits" in note for note in done.notes)
    assert any("torque limits" in note for note in done.notes)
    assert passport.ranges.rows == 32 * 10
    assert contradictions(passport, load_robot("go2").spec) == []
    env, policy = open_bundle(done.bundle.path)
    assert policy(env.reset()).shape == (1, 12)
    first, second = weights()
    obs = np.random.default_rng(1).normal(size=(3, 45)).astype(np.float32)
    hidden = obs @ first
    expected = np.where(hidden > 0, hidden, np.exp(hidden) - 1) @ second
    np.testing.assert_allclose(done.bundle.runner(3).act(obs), expected, atol=1e-5)


def test_a_joint_that_turns_the_other_way_is_said_and_folded_in(net, layout, tmp_path):
    layout.write_text(LAYOUT.replace("[action]", f"signs = {[-1] + [1] * 11}\n[action]", 1))
    passport = brought(net, tmp_path, layout=layout).bundle.passport
    assert passport.signs[0] == -1
    assert passport.policy.action.scale[:2] == (-0.25, 0.25)


def metadata(**more):
    return {
        "joint_names": ",".join(JOINTS),
        "joint_stiffness": ",".join(["20.0"] * 12),
        "joint_damping": ",".join(["0.5"] * 12),
        "default_joint_pos": ",".join(["0.0", "0.8", "-1.5"] * 4),
        "command_names": "twist",
        "observation_names": "base_ang_vel,projected_gravity,command,joint_pos,joint_vel,actions",
        "action_scale": "0.25",
        **more,
    }


def test_metadata_of_mjlab_are_enough_where_they_say_everything(tmp_path):
    said = {"observation_terms_scale": ",".join(["1.0"] * 6), "observation_terms_history_length": ",".join(["0"] * 6)}
    net = save_mlp(tmp_path / "policy.onnx", metadata(**said))
    with pytest.raises(TrueupError, match=r"does not say control_hz \(--hz\)"):
        brought(net, tmp_path)
    done = brought(net, tmp_path, hz=50.0)
    assert done.bundle.passport.origin.format == "onnx-metadata"
    assert any("IMU frame" in note for note in done.notes)


def test_a_layout_toml_completes_older_metadata(tmp_path):
    net = save_mlp(tmp_path / "policy.onnx", metadata())
    with pytest.raises(TrueupError, match=r"control_hz \(--hz\), observation"):
        brought(net, tmp_path)
    rest = tmp_path / "rest.toml"
    rest.write_text("control_hz = 50.0\n" + LAYOUT[LAYOUT.index("[[observation]]") :])
    assert brought(net, tmp_path, layout=rest).bundle.passport.policy.kp == (20.0,) * 12


def test_what_is_missing_or_does_not_fit_is_named(net, layout, tmp_path):
    with pytest.raises(TrueupError, match="says nothing of its joints itself: name its layout with --layout"):
        brought(net, tmp_path)
    with pytest.raises(TrueupError, match=r"name the task .* with --task: none of robot 'z1' fits|different joints"):
        tu.import_policy(net, layout=layout, robot="z1", out=tmp_path / "x.bundle")
    with pytest.raises(TrueupError, match="does not ask for velocities"):
        brought(net, tmp_path, layout=layout, task="go2-clip")
    layout.write_text(LAYOUT.replace('\n[[observation]]\nsignal = "gravity"\n', ""))
    with pytest.raises(TrueupError, match="has 45 observations, but layout 'toy' has 42"):
        brought(net, tmp_path, layout=layout)
    assert not (tmp_path / "theirs.bundle").exists()


def test_torque_limits_may_be_given_and_are_at_most_the_robots(net, layout, tmp_path):
    done = brought(net, tmp_path, layout=layout, torque=(30.0,), seconds=0.0)
    limits = dict(zip(done.bundle.passport.joint_names, done.bundle.passport.torque_limit, strict=True))
    assert (limits["FR_hip_joint"], limits["FR_calf_joint"]) == (23.7, 30.0)
    assert any("30 N m in the layout, the robot gives 23.7" in note for note in done.notes)
    assert done.bundle.passport.ranges is None
    assert "not run" in done.bundle.passport.ranges_missing
    with pytest.raises(TrueupError, match="--torque needs one number"):
        brought(net, tmp_path, layout=layout, torque=(1.0, 2.0))


def test_joints_that_are_numbered_take_the_order_of_the_known_sdk(net, tmp_path):
    import yaml

    term = {"params": {}, "clip": None, "scale": None, "history_length": 1}
    names = ("base_ang_vel", "projected_gravity", "velocity_commands", "joint_pos_rel", "joint_vel_rel", "last_action")
    said = {
        "joint_ids_map": [3, 0, 9, 6, 4, 1, 10, 7, 5, 2, 11, 8],  # FL, FR, RL, RR: hips, thighs, calves
        "step_dt": 0.02,
        "stiffness": [25.0] * 12,
        "damping": [0.5] * 12,
        "default_joint_pos": [0.1, -0.1, 0.1, -0.1, 0.8, 0.8, 1.0, 1.0, -1.5, -1.5, -1.5, -1.5],
        "commands": {"base_velocity": {"ranges": dict.fromkeys(("lin_vel_x", "lin_vel_y", "ang_vel_z"), (-0.5, 0.5))}},
        "actions": {"JointPositionAction": {"scale": 0.25, "offset": 0.0, "clip": None, "joint_ids": None}},
        "observations": dict.fromkeys(names, term),
    }
    path = tmp_path / "deploy.yaml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps(said))))
    done = brought(net, tmp_path, layout=path)
    assert done.bundle.passport.joint_names[:4] == ("FL_hip_joint", "FR_hip_joint", "RL_hip_joint", "RR_hip_joint")
    assert done.bundle.passport.goal.source == "layout"
    assert done.bundle.passport.goal.high == (0.5, 0.5, 0.5)
    assert any("order of the SDK of Unitree quadrupeds" in note for note in done.notes)


# --- TorchScript ---
class Estimator(torch.nn.Module):
    """An estimate from the whole observation, made a unit vector, beside the observation: as himloco's policies are."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.estimator = torch.nn.Sequential(torch.nn.Linear(45, 16), torch.nn.ELU(), torch.nn.Linear(16, 8))
        self.actor = torch.nn.Sequential(torch.nn.Linear(53, 16), torch.nn.ELU(), torch.nn.Linear(16, 12))

    def forward(self, obs):
        z = torch.nn.functional.normalize(self.estimator(obs), dim=-1, p=2.0)
        return 0.1 * self.actor(torch.cat([obs, z], dim=-1))


class Remembers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(1))

    def forward(self, obs):
        self.kept += 1.0
        return obs[:, :12] + self.kept


class Recurrent(Remembers):
    def __init__(self):
        super().__init__()
        self.register_buffer("hidden_state", torch.zeros(1))


def scripted(module, path):
    torch.jit.script(module.eval()).save(str(path))
    return path


@pytest.mark.medium
def test_torchscript_is_saved_as_onnx_and_acts_as_torch_does(layout, tmp_path):
    net = scripted(Estimator(), tmp_path / "policy.pt")
    done = brought(net, tmp_path, layout=layout)
    assert done.parity["torch"] <= 1e-5
    obs = np.random.default_rng(2).normal(size=(5, 45)).astype(np.float32)
    with torch.no_grad():
        expected = Estimator()(torch.from_numpy(obs)).numpy()
    np.testing.assert_allclose(done.bundle.runner(5).act(obs), expected, atol=1e-5)


@pytest.mark.medium
def test_torchscript_with_memory_inside_or_of_another_width_is_refused(layout, tmp_path):
    for module, named in ((Recurrent(), r"memory inside \(hidden_state\)"), (Remembers(), "remembers its past inside")):
        with pytest.raises(TrueupError, match=named):
            brought(scripted(module, tmp_path / "policy.pt"), tmp_path, layout=layout)
    layout.write_text(LAYOUT + '\n[[observation]]\nsignal = "gyro"\n')
    with pytest.raises(TrueupError, match="does not take 48 observations"):
        brought(scripted(Estimator(), tmp_path / "policy.pt"), tmp_path, layout=layout)
    (tmp_path / "policy.pt").write_bytes(b"not torch")
    with pytest.raises(TrueupError, match="not a TorchScript network"):
        brought(tmp_path / "policy.pt", tmp_path, layout=layout)


# --- hostile networks ---
def test_a_network_of_ours_passes_the_trial_and_a_hungry_one_does_not(tmp_path):
    try_onnx(policy_onnx(make_net("latent")), tmp_path / "policy.onnx")
    big = numpy_helper.from_array(np.array([60_000, 60_000], np.int64), "shape")
    nodes = [
        helper.make_node("Expand", ["one", "shape"], ["huge"]),
        helper.make_node("ReduceSum", ["huge"], ["sum"], keepdims=0),
        helper.make_node("Add", ["obs", "sum"], ["actions"]),
    ]
    graph = helper.make_graph(
        nodes,
        "bomb",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, ["n", 2])],
        [big, numpy_helper.from_array(np.ones((1, 1), np.float32), "one")],
    )
    path = save_graph(tmp_path / "bomb.onnx", graph)
    with pytest.raises(TrueupError, match="beyond what a policy may use"):
        try_onnx(path.read_bytes(), path)


def test_garbage_is_refused_before_anything_else_is_asked(tmp_path):
    for name, data in (("policy.onnx", b"\x00" * 99), ("policy.onnx", b"")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(TrueupError, match="not an ONNX network"):
            brought(tmp_path / name, tmp_path)
    with pytest.raises(TrueupError, match="no such file"):
        brought(tmp_path / "nowhere.onnx", tmp_path)


# --- real ones ---
@needs_policies
@pytest.mark.medium
def test_a_public_go2_policy_is_imported_with_one_command(tmp_path):
    folder = POLICIES / "go2_robot_lab"
    done = tu.import_policy(
        folder / "policy.onnx", layout=folder / "config.yaml", robot="go2", out=tmp_path / "x.bundle", seconds=2.0
    )
    passport = load_bundle(tmp_path / "x.bundle").passport
    assert passport.joint_names == tuple(NAMES)
    assert passport.policy.kp == (20.0,) * 12
    assert passport.torque_limit == (23.5,) * 12
    assert done.parity["onnxruntime"] <= 1e-5
    task = bundle_task(passport)
    assert (task.name, task.rates.control_hz) == ("go2-velocity", 50.0)
    assert fitting_tasks(layout_of(passport), "go2") == ["go2-velocity"]


@needs_policies
def test_motion_tracking_is_refused_by_what_no_task_gives(tmp_path):
    folder = Path(POLICIES) / "g1_dance_102"
    if not folder.is_dir():
        pytest.skip("no motion tracking policy")
    with pytest.raises(TrueupError, match=r"different joints|observes 'reference'|none of robot"):
        tu.import_policy(folder / "policy.onnx", layout=folder / "config.yaml", robot="go2", out=tmp_path / "x.bundle")
    assert not list(tmp_path.iterdir())
