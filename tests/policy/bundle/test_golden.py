"""Golden sequences: numbers by hand, and every change of the passport that moves one is refused with its name."""

import io
import zipfile
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from made_bundles import JOINTS, POSE, edit_spec, make_bundle, make_net, make_passport

from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import load_bundle
from trueup.policy.bundle.golden import (
    action_distance,
    check_golden,
    decode_golden,
    distance,
    encode_golden,
    make_golden,
    respond,
)
from trueup.policy.bundle.manifest import GOLDEN, read_files, write_files
from trueup.policy.graph.net import GraphNet
from trueup.policy.graph.onnx_file import parse_onnx
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.runner import PolicyRunner

SORTED = ("ankle", "hip", "knee")


def maker(net):
    graph = parse_onnx(policy_onnx(net), "policy.onnx")
    return lambda nrow: GraphNet(graph, "policy.onnx", nrow)


@pytest.fixture(scope="module")
def golden():
    return make_golden(make_passport(), maker(make_net()))


def test_observations_targets_and_torques_are_what_the_specs_say_by_hand(golden):
    reading = {name: golden[f"walk/{name}"][0, 0] for name in ("joint_pos", "joint_vel", "gyro", "gravity", "asked")}
    place = [SORTED.index(name) for name in JOINTS]  # of each joint of the policy in the sorted columns
    q, v = reading["joint_pos"][place], reading["joint_vel"][place]
    frame = [0.25 * np.clip(reading["gyro"], -2, 2), reading["gravity"], reading["asked"] * [2, 2, 0.25]]
    frame = np.concatenate([*frame, q - POSE, 0.05 * v, np.zeros(3)])
    np.testing.assert_allclose(golden["walk/obs"][0, 0], np.tile(frame, 2), atol=1e-6)  # the past is the present
    action = golden["walk/action"][0, 0]
    target = np.clip(np.array(POSE) + 0.25 * action, -1, 1)
    np.testing.assert_allclose(golden["walk/target"][0, 0][place], target, atol=1e-6)
    torque = np.clip([20.0, 20.0, 15.0] * (target - q) - [0.5, 0.5, 0.4] * v, [-20, -20, -10], [20, 20, 10])
    np.testing.assert_allclose(golden["walk/torque"][0, 0][place], torque, atol=1e-6)
    np.testing.assert_allclose(golden["walk/time"][:3], [0.0, 0.02, 0.04])
    assert float(golden["physics_dt"]) == 0.005


def test_a_restart_in_the_middle_fills_the_past_of_that_row_only(golden):
    (steps, rows) = np.nonzero(golden["walk/restart"])
    later = [(int(step), int(row)) for step, row in zip(steps, rows, strict=True) if step]
    assert later == [(6, 1)]
    obs = golden["walk/obs"][6]
    np.testing.assert_array_equal(obs[1, :18], obs[1, 18:])
    assert np.abs(obs[0, :18] - obs[0, 18:]).max() > 0.1
    np.testing.assert_array_equal(obs[1, 15:18], 0.0)  # no last action


@pytest.mark.parametrize("kind", ["latent", "action"])
def test_golden_actions_of_students_are_those_of_the_runner_of_training(kind):
    net = make_net(kind)
    golden = make_golden(make_passport(net), maker(net), net.spec.steps)
    runner = PolicyRunner(net, 2)
    for obs, restart, action in zip(golden["walk/obs"], golden["walk/restart"], golden["walk/action"], strict=True):
        runner.restart(np.flatnonzero(restart))
        np.testing.assert_allclose(runner.act(obs), action, atol=1e-6)
    assert len(golden["walk/obs"]) >= net.spec.steps + 4


def test_extremes_reach_every_limit(golden):
    assert np.abs(golden["extreme/obs"][..., :3]).max() == pytest.approx(0.5)  # gyro, clipped at 2 and scaled
    np.testing.assert_allclose(np.abs(golden["extreme/target"]).max(axis=(0, 1)), 1.0)
    limits = np.abs(golden["extreme/torque"]).max(axis=(0, 1))
    np.testing.assert_allclose(limits, [10.0, 20.0, 20.0])  # ankle, hip, knee


def swap(names):
    names[0], names[1] = names[1], names[0]


def policy(*keys):
    """A change of spec["policy"][...]: the last key is the new value, or a function of the old one."""
    *path, last, value = keys

    def change(spec):
        place = spec["policy"]
        for key in path:
            place = place[key]
        place[last] = value(place[last]) if callable(value) else value

    return change


def both_orders(spec):
    for part in ("observation", "action"):
        swap(spec["policy"][part]["joint_names"])


def normalizer(spec):
    spec["normalizer"]["mean"][4] += 0.01


def turned(spec):
    spec["signs"][1] = -1
    spec["policy"]["action"]["scale"][1] *= -1
    for k in (3, 4):
        term = spec["policy"]["observation"]["terms"][k]
        term["scale"] = [term["scale"], -term["scale"], term["scale"]]


CHANGES = {
    "order": (both_orders, "walk/obs"),
    "sign": (turned, "walk/obs"),
    "scale of a term": (policy("observation", "terms", 4, "scale", 0.06), "walk/obs"),
    "clip of a term": (policy("observation", "terms", 0, "clip", [[-3, 3]]), "extreme/obs"),
    "scale of actions": (policy("action", "scale", [0.25, 0.25, 0.26]), "walk/target"),
    "clip of actions": (policy("action", "clip", 500.0), "extreme/target"),
    "limits of targets": (policy("action", "low", [-1.1, -1, -1]), "extreme/target"),
    "pose seen": (policy("observation", "default_pose", [0.1, -0.41, 0.3]), "walk/obs"),
    "pose moved": (policy("action", "default_pose", [0.1, -0.41, 0.3]), "walk/target"),
    "action seen": (policy("action", "observe_clipped", True), "extreme/obs"),
    "frames by term": (policy("observation", "by_term", True), "walk/obs"),
    "frames newest first": (policy("observation", "ages", [0, 1]), "walk/obs"),
    "command rate": (policy("observation", "command_step", [0.1, 0.1, 0.1]), "walk/obs"),
    "kp": (policy("kp", [20.0, 20.5, 15.0]), "walk/torque"),
    "kd": (policy("kd", [0.5, 0.5, 0.5]), "walk/torque"),
    "rate": (policy("control_hz", 100.0), "walk/time"),
    "physics rate": (lambda spec: spec.update(physics_hz=400.0), "physics_dt"),
    "torque limit": (lambda spec: spec.update(torque_limit=[25.0, 20.0, 10.0]), "extreme/torque"),
    "history": (policy("observation", "history", 3), "ranges: 36 numbers for 54"),
    "normaliser": (normalizer, "normaliser: mean of column 4"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_passport_that_was_changed_and_signed_again_is_refused(tmp_path, name):
    change, named = CHANGES[name]
    bundle = make_bundle(tmp_path / "toy.bundle").path
    edit_spec(bundle, change, sign=True)
    with pytest.raises(TrueupError, match=named):
        load_bundle(bundle)


def test_a_change_below_the_tolerance_is_none(tmp_path):
    bundle = make_bundle(tmp_path / "toy.bundle").path
    edit_spec(bundle, policy("action", "default_pose", [0.1 + 1e-7, -0.4, 0.3]), sign=True)
    assert 0.0 < load_bundle(bundle).worst < 1e-5


def test_bytes_come_back_and_bombs_are_refused(golden, tmp_path):
    back = decode_golden(encode_golden(golden), tmp_path)
    assert back.keys() == golden.keys()
    for name, values in golden.items():
        np.testing.assert_array_equal(back[name], values)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"\0" * 65_000_000)
    assert len(bomb.getvalue()) < 100_000
    with pytest.raises(TrueupError, match="unpacks to more"):
        decode_golden(bomb.getvalue(), tmp_path)


@pytest.mark.parametrize("data", [b"", b"PK", b"\x93NUMPY", b"x" * 1000])
def test_what_is_no_archive_is_refused(data, tmp_path):
    with pytest.raises(TrueupError, match="golden sequences"):
        decode_golden(data, tmp_path)


def test_objects_and_numbers_that_are_not_finite_are_refused(golden, tmp_path):
    spoiled = golden | {"walk/gyro": np.full_like(golden["walk/gyro"], np.inf)}
    with pytest.raises(TrueupError, match="not finite in 'walk/gyro'"):
        decode_golden(encode_golden(spoiled), tmp_path)
    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([{}], object))
    with pytest.raises(TrueupError, match="golden sequences"):
        decode_golden(buffer.getvalue(), tmp_path)


@pytest.mark.parametrize(
    ("name", "values", "named"),
    [
        ("joint_names", np.array(["a", "b", "c"]), "other joints"),
        ("walk/joint_pos", np.zeros((12, 2, 2)), "readings 'walk'"),
        ("walk/restart", np.ones((12, 2)), "readings 'walk'"),
        ("extreme/asked", np.zeros((12, 2, 3), np.int64), "readings 'extreme'"),
        ("extreme/given", np.zeros((12, 2, 2), np.float32), "actions do not fit"),
        ("random/obs", np.zeros((4, 35), np.float32), "observations do not fit"),
        ("walk/action", np.zeros((12, 2, 2)), "lacks 'walk/action'"),
        ("random/action", None, "lacks 'random/action'"),
    ],
)
def test_sequences_of_other_shapes_are_refused_by_name(tmp_path, name, values, named):
    bundle = make_bundle(tmp_path / "toy.bundle").path
    manifest, files, _ = read_files(bundle)
    arrays = decode_golden(files[GOLDEN], bundle)
    arrays = arrays | {name: values} if values is not None else {k: v for k, v in arrays.items() if k != name}
    write_files(bundle, files | {GOLDEN: encode_golden(arrays)}, manifest.opset, manifest.operators)
    with pytest.raises(TrueupError, match=named):
        load_bundle(bundle)


def test_a_network_that_is_too_slow_for_a_robot_is_refused(golden, tmp_path, monkeypatch):
    monkeypatch.setattr("trueup.policy.bundle.golden._MOST_S", -1.0)
    with pytest.raises(TrueupError, match="too slow for a robot"):
        check_golden(make_passport(), maker(make_net()), golden, tmp_path)


def test_distance_is_absolute_below_one_and_relative_above():
    assert distance(np.array([0.5, 100.0]), np.array([0.4, 101.0])) == pytest.approx(0.1)
    assert distance(np.array([200.0]), np.array([100.0])) == pytest.approx(1.0)
    assert distance(np.zeros(0), np.zeros(0)) == 0.0


def test_the_worst_difference_is_told_by_name_and_size(golden, tmp_path):
    net = make_net()
    weight, bias = net.actor[-1]
    moved = replace(net, actor=(*net.actor[:-1], (weight, bias + np.float32(0.01))))
    with pytest.raises(TrueupError, match=r"'walk/action': they differ by 0\.0\d+, allowed is 1e-05"):
        check_golden(make_passport(), maker(moved), golden, tmp_path)


def test_targets_that_move_from_the_last_begin_at_the_joints(golden):
    spec = make_passport().policy
    moving = msgspec.structs.replace(spec, action=msgspec.structs.replace(spec.action, relative=True))
    passport = msgspec.structs.replace(make_passport(), policy=moving)
    found = respond(passport, maker(make_net()), golden)
    start = golden["walk/joint_pos"][0, 0]
    place = [JOINTS.index(name) for name in SORTED]
    expected = np.clip(start + 0.25 * found["walk/action"][0, 0][place], -1, 1)
    np.testing.assert_allclose(found["walk/target"][0, 0], expected, atol=1e-6)


def test_outputs_of_two_engines_are_compared_at_the_size_of_the_largest():
    actions = np.array([[8.0, 0.5], [0.25, 0.0]])
    other = actions.copy()
    other[1, 1] += 4e-5
    assert action_distance(other, actions) == pytest.approx(5e-6)
    assert distance(other, actions) == pytest.approx(4e-5)
    assert action_distance(actions[1:] + 2e-5, actions[1:]) == pytest.approx(2e-5)  # below one: absolute
    assert np.isnan(action_distance(np.full((1, 2), np.nan), actions[:1]))
