"""Replay: golden sequences through the controller, recordings bit for bit, logs at the control rate."""

import numpy as np
import pytest
from made_bundles import edit_spec
from made_deploys import ToyDriver, standing_bundle, toy_bundle, toy_spec

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.mcap.write import write_log
from trueup.deploy.control.controller import ControlCfg, Controller
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.ladder.replay import golden_difference, quat_of_gravity, replay_log, replay_recording
from trueup.deploy.session.recording import RowsHeader, RowWriter, column_widths, read_rows
from trueup.deploy.session.session import DeploySession, DeploySessionCfg
from trueup.policy.reading import gravity_in_body

SPEC = toy_spec()


@pytest.mark.parametrize("kind", ["plain", "latent", "action"])
@pytest.mark.parametrize("names", [("ankle", "hip", "knee"), ("knee", "hip", "ankle")])
def test_the_controller_gives_the_golden_targets_in_any_joint_order(tmp_path, kind, names):
    bundle = toy_bundle(tmp_path / "b", kind)
    assert golden_difference(bundle, names) < 1e-5
    assert golden_difference(bundle, names, ControlCfg(smoothing=0.3, target_step=0.01)) < 1e-5  # both are left out


def test_a_policy_of_a_whole_robot_gives_its_golden_targets(tmp_path):
    bundle = standing_bundle(tmp_path / "b", noise=0.3)
    names = tuple(reversed(bundle.passport.joint_names))
    assert golden_difference(bundle, names) < 1e-5


def test_a_quaternion_is_found_for_every_direction_of_gravity():
    rng = np.random.default_rng(0)
    for down in [*rng.normal(size=(200, 3)), np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, -1.0])]:
        down = down / np.linalg.norm(down)
        assert gravity_in_body(quat_of_gravity(down)[None])[0] == pytest.approx(down, abs=1e-12)


def recorded(folder, bundle, cfg, seconds=2.0, start=0.2):
    controller = Controller(bundle, SPEC.joint_names, cfg)
    spec = bundle.passport.policy
    header = RowsHeader(
        bundle=str(bundle.path), bundle_hash=bundle.hash, robot="toy", joint_names=SPEC.joint_names, control_hz=50.0,
        has_imu=True, columns=column_widths(3, 3, spec.observation.nactor, 3),
        settings={"smoothing": cfg.smoothing, "target_step": cfg.target_step, "engine": cfg.engine},
    )  # fmt: skip
    writer = RowWriter(folder / "policy.rows", header)
    goal = AskedGoal(bundle.passport.goal)

    class Steering:
        def poll(self, goal):
            goal.nudge("forward", 1)
            return ""

    driver = ToyDriver(SPEC, start=SPEC.default_pose + start)
    DeploySession(
        controller, driver, goal, DeploySessionCfg(seconds=seconds, ramp_s=0.3), controls=[Steering()], writer=writer
    ).run()
    writer.close()
    return folder / "policy.rows"


@pytest.mark.parametrize("kind", ["plain", "latent", "action"])
@pytest.mark.parametrize("cfg", [ControlCfg(), ControlCfg(smoothing=0.3, target_step=0.02)])
def test_a_recording_gives_the_same_commands_bit_for_bit(tmp_path, kind, cfg):
    path = recorded(tmp_path, toy_bundle(tmp_path / "b", kind), cfg)
    found = replay_recording(path)
    assert (found.rows, found.different, found.worst, found.first, found.damaged, found.same) == (
        100,
        0,
        0.0,
        "",
        0,
        True,
    )
    assert replay_recording(path.parent).same  # the folder of the run will do


def test_a_changed_number_is_found_at_its_row(tmp_path):
    path = recorded(tmp_path, toy_bundle(tmp_path / "b"), ControlCfg())
    found = read_rows(path)
    table = np.concatenate([found.columns[name] for name in found.header.columns], axis=1)
    row = int(np.flatnonzero(found.columns["phase"][:, 0] == 1)[10])
    place = list(found.header.columns).index("joint_pos")
    table[row, sum(list(found.header.columns.values())[:place])] += 1e-6
    writer = RowWriter(tmp_path / "changed.rows", found.header)
    for values in table:
        ends = np.cumsum([0, *found.header.columns.values()])
        writer.add(**{name: values[a:b] for name, a, b in zip(found.header.columns, ends, ends[1:], strict=False)})
    writer.close()
    again = replay_recording(tmp_path / "changed.rows")
    assert not again.same
    assert again.first == f"row {row}, observation"
    assert 0.0 < again.worst < 1e-3


def test_a_recording_of_another_bundle_is_refused(tmp_path):
    path = recorded(tmp_path, toy_bundle(tmp_path / "b"), ControlCfg())
    toy_bundle(tmp_path / "other", "latent")
    with pytest.raises(TrueupError, match="was made by the bundle"):
        replay_recording(path, tmp_path / "other")
    edit_spec(tmp_path / "b", lambda spec: spec.update(ranges_missing="x"), sign=True)
    with pytest.raises(TrueupError, match="was made by the bundle"):
        replay_recording(path)


def test_a_recording_without_its_beginning_is_refused(tmp_path):
    path = recorded(tmp_path, toy_bundle(tmp_path / "b"), ControlCfg())
    data = path.read_bytes()
    head, _, body = data.partition(b"\n")
    size = 8 * (sum(read_rows(path).header.columns.values()) + 1)
    path.write_bytes(head + b"\n" + body[-50 * size :])
    with pytest.raises(TrueupError, match="lacks the rows before"):
        replay_recording(path)


def test_a_log_of_the_robot_runs_through_the_policy(tmp_path):
    bundle, n = toy_bundle(tmp_path / "b"), 400
    time = np.arange(n) / 200.0
    names = ("hip", "knee", "ankle")  # another order than the robot's
    pos = np.array([0.1, -0.4, 0.3]) + 0.1 * np.sin(3.0 * time)[:, None]
    signals = {
        "joint_pos": pos, "joint_vel": np.zeros((n, 3)), "imu_gyro": np.zeros((n, 3)), "target_pos": pos + 0.2,
        "imu_quat": np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)),
    }  # fmt: skip
    path = write_log(Log(time=time, joint_names=names, signals=signals), tmp_path / "log.mcap")
    found = replay_log(bundle, path, SPEC.joint_names, AskedGoal(bundle.passport.goal))
    assert (found.steps, found.in_range, found.outside) == (100, 1.0, ())
    assert 0.0 < found.agreement < 2.0
    slow = Log(time=time * 10, joint_names=names, signals=signals)
    with pytest.raises(TrueupError, match="20 rows a second, the policy needs 50"):
        replay_log(bundle, write_log(slow, tmp_path / "slow.mcap"), SPEC.joint_names, AskedGoal(bundle.passport.goal))
