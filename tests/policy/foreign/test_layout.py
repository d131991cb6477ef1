"""Layouts of others: every number at its place, computed by hand; what does not fit is named."""

import numpy as np
import pytest
from made_policies import MOTORS, deploy_file, rl_sar_files

from trueup.core.errors import TrueupError
from trueup.policy.action import ActionMap, JointOrder
from trueup.policy.foreign.layout import read_layout
from trueup.policy.observation import ObservationBuilder
from trueup.policy.reading import Reading

# each list holds nine of the one before: 9^12 values in a few lines
GROWING = "l0: &l0 [1]\n" + "".join(f"l{k + 1}: &l{k + 1} [{', '.join(9 * [f'*l{k}'])}]\n" for k in range(12))


def reading(layout, motors, speeds=(0.0, 0.0, 0.0), gyro=(1.0, 2.0, 4.0)):
    """A reading of a robot that lists its joints as the SDK does."""
    order = JointOrder(layout.joint_names, MOTORS)
    return Reading(
        joint_pos=order.to_policy(np.array([motors])),
        joint_vel=order.to_policy(np.array([speeds])),
        gyro=np.array([gyro]),
        gravity=np.array([[0.0, 0.6, -0.8]]),
    )


def rows(*values):
    return np.array([values], np.float32)


def test_rl_sar_numbers_stand_in_the_policys_order(tmp_path):
    layout = read_layout(rl_sar_files(tmp_path))
    assert (layout.format, layout.name, layout.control_hz) == ("rl_sar", "toy/walk", pytest.approx(50.0))
    assert layout.joint_names == ("c", "a", "b")
    assert layout.kp == (30.0, 10.0, 20.0)
    assert layout.torque == (3.0, 1.0, 2.0)
    found = ObservationBuilder(layout.observation).restart(
        reading(layout, (1.1, 1.2, 1.3), (10.0, 20.0, -3000.0)), rows(0.5, -0.5, 1.0), rows(7.0, 8.0, 9.0)
    )
    gyro, gravity, command = (0.25, 0.5, 1.0), (0.0, 0.6, -0.8), (1.0, -1.0, 0.25)
    joint_pos = (1.3 - 0.3, 1.1 - 0.1, 1.2 - 0.2)
    joint_vel = (-100.0, 0.5, 1.0)  # c turns at -3000 rad/s: scaled to -150, then clipped
    expected = (*gyro, *gravity, *command, *joint_pos, *joint_vel, 7.0, 8.0, 9.0)
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def test_rl_sar_targets_come_from_clipped_actions_which_the_policy_sees(tmp_path):
    layout = read_layout(rl_sar_files(tmp_path))
    mapping, action = ActionMap(layout.action), rows(8.0, 1.0, -8.0)
    target = JointOrder(layout.joint_names, MOTORS).to_robot(mapping.target(action))
    # c: 0.3 + 0.5 * 4; a: 0.1 + 0.25 * 1; b: 0.2 - 0.125 * 6
    np.testing.assert_allclose(target, [[0.35, -0.55, 2.3]])
    np.testing.assert_array_equal(mapping.observed(action), [[4.0, 1.0, -6.0]])


@pytest.mark.parametrize(
    ("priority", "ages", "expected"),
    [
        ("time", [0, 1], [3, 3, 3, 31, 11, 21, 2, 2, 2, 30, 10, 20]),
        ("time", [2, 0], [1, 1, 1, 30, 10, 20, 3, 3, 3, 31, 11, 21]),
        ("term", [0, 2], [3, 3, 3, 1, 1, 1, 31, 11, 21, 30, 10, 20]),
    ],
)
def test_rl_sar_frames_stand_by_age(tmp_path, priority, ages, expected):
    changes = {
        "observations": ["ang_vel", "dof_pos"],
        "num_observations": 6,
        "ang_vel_scale": 1.0,
        "default_dof_pos": [0.0, 0.0, 0.0],
        "observations_history": ages,
        "observations_history_priority": priority,
    }
    layout = read_layout(rl_sar_files(tmp_path, changes))
    builder, nothing = ObservationBuilder(layout.observation), rows(0.0, 0.0, 0.0)
    builder.restart(reading(layout, (10, 20, 30), gyro=(1, 1, 1)), nothing, nothing)
    builder.step(reading(layout, (10, 20, 30), gyro=(2, 2, 2)), nothing, nothing)
    found = builder.step(reading(layout, (11, 21, 31), gyro=(3, 3, 3)), nothing, nothing)
    np.testing.assert_array_equal(found[0], expected)
    assert found.flags.c_contiguous


def test_deploy_yaml_gains_are_in_the_sdks_order_and_histories_stand_term_by_term(tmp_path):
    layout = read_layout(deploy_file(tmp_path), joint_names=MOTORS)
    assert layout.joint_names == ("c", "a", "b")
    assert layout.control_hz == pytest.approx(50.0)
    assert layout.kp == (30.0, 10.0, 20.0)
    assert layout.kd == (3.0, 1.0, 2.0)
    builder = ObservationBuilder(layout.observation)
    asked, action = rows(2.0, -1.0, 0.1), rows(7.0, 8.0, 900.0)
    builder.restart(reading(layout, (1.1, 1.2, 1.3), gyro=(5, 5, 5)), asked, action)
    builder.step(reading(layout, (2.1, 2.2, 2.3), gyro=(10, 10, 10)), asked, action)
    found = builder.step(reading(layout, (3.1, 3.2, 3.3), gyro=(15, 15, 15)), asked, action)
    command = (1.0, -0.3, 0.2)  # held within its ranges, then scaled
    joint_pos = (1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0)  # oldest first
    expected = (2.0, 2.0, 2.0, 3.0, 3.0, 3.0, *command, *joint_pos, 7.0, 8.0, 900.0)
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def test_deploy_yaml_clips_targets_and_shows_the_policy_its_own_output(tmp_path):
    action = {
        "clip": [[-1.0, 1.0]] * 3,
        "scale": [0.5, 0.25, 0.125],
        "offset": [0.31, 0.11, 0.21],
        "joint_ids": [0, 1, 2],
    }
    layout = read_layout(deploy_file(tmp_path, {"actions": {"JointPositionAction": action}}), joint_names=MOTORS)
    mapping, said = ActionMap(layout.action), rows(8.0, 2.0, -4.0)
    np.testing.assert_allclose(mapping.target(said), [[1.0, 0.61, -0.29]])
    np.testing.assert_array_equal(mapping.observed(said), said)


def test_deploy_yaml_may_ask_for_whole_frames_and_scaling_first(tmp_path):
    gyro = {"params": {}, "clip": [-1.5, 1.5], "scale": [0.5] * 3, "history_length": 2}
    terms = {"use_gym_history": True, "scale_first": True, "base_ang_vel": gyro}
    terms |= dict.fromkeys(("velocity_commands", "joint_pos_rel", "last_action"), "absent")
    terms |= {"projected_gravity": {"params": {}, "clip": None, "scale": None, "history_length": 2}}
    layout = read_layout(deploy_file(tmp_path, terms=terms), joint_names=MOTORS)
    builder, nothing = ObservationBuilder(layout.observation), rows(0.0, 0.0, 0.0)
    builder.restart(reading(layout, (0, 0, 0), gyro=(1, 1, 1)), nothing, nothing)
    found = builder.step(reading(layout, (0, 0, 0), gyro=(2, 2, 4)), nothing, nothing)
    np.testing.assert_allclose(found[0], [0.5, 0.5, 0.5, 0, 0.6, -0.8, 1.0, 1.0, 1.5, 0, 0.6, -0.8], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"observations": ["ang_vel", "dof_pso"]}, "'dof_pso' is not understood .did you mean 'dof_pos'"),
        ({"observations": ["lin_vel"]}, "'lin_vel' is not understood"),
        ({"num_observations": 45}, "num_observations: says 45, but its terms have 18 columns"),
        ({"rl_kp": [1.0, 2.0]}, "kp: 2 numbers for 3 joints"),
        ({"joint_mapping": [0, 1, 1]}, "joint_mapping: must hold each of 0..2 once"),
        ({"wheel_indices": [2]}, "wheels"),
        ({"hip_scale_reduction": 0.5}, "hip_scale_reduction"),
        ({"rl_kd": "absent"}, "rl_kd"),
        ({"clip_obs": float("nan")}, "finite"),
        ({"default_dof_pos": [0.1]}, "default_pose"),
        ({"action_scale": ["fast"] * 3}, "action_scale"),
    ],
)
def test_an_rl_sar_layout_that_does_not_fit_is_named(tmp_path, changes, named):
    with pytest.raises(TrueupError, match=named):
        read_layout(rl_sar_files(tmp_path, changes))


def test_lists_of_the_base_file_in_another_order_are_not_taken_over(tmp_path):
    config = rl_sar_files(tmp_path, {"torque_limits": "absent"}, {"torque_limits": [1.0, 2.0, 3.0]})
    with pytest.raises(TrueupError, match="torque_limits"):
        read_layout(config)


def test_the_base_file_is_found_one_folder_up_or_asked_for(tmp_path):
    (tmp_path / "walk").mkdir()
    config = rl_sar_files(tmp_path).rename(tmp_path / "walk" / "config.yaml")
    assert read_layout(config).joint_names == ("c", "a", "b")
    base = (tmp_path / "base.yaml").rename(tmp_path / "robot.yaml")
    with pytest.raises(TrueupError, match="base.yaml"):
        read_layout(config)
    assert read_layout(config, base=base).joint_names == ("c", "a", "b")


@pytest.mark.parametrize(
    ("changes", "terms", "named"),
    [
        ({}, {"gait_phase": {"params": {"period": 0.6}}}, "'gait_phase' is not understood"),
        ({}, {"joint_pos_rel": {"params": {"asset_cfg": {"joint_ids": [0]}}}}, "joint_pos_rel.*some joints"),
        ({}, {"base_ang_vel": {"scale": [1.0, 2.0]}}, "gyro: 2 scales for 3 columns"),
        ({"damping": [1.0]}, {}, "damping: 1 numbers for 3 joints"),
        ({"joint_ids_map": [0, 1]}, {}, "joint_ids_map"),
        ({"step_dt": 0.0}, {}, "step_dt"),
        ({"actions": {"JointVelocityAction": {"scale": 1.0, "offset": 0.0}}}, {}, "JointVelocityAction"),
        ({"commands": {}}, {}, "lin_vel_x"),
        ({"stiffness": "absent"}, {}, "stiffness"),
    ],
)
def test_a_deploy_yaml_that_does_not_fit_is_named(tmp_path, changes, terms, named):
    with pytest.raises(TrueupError, match=named):
        read_layout(deploy_file(tmp_path, changes, terms), joint_names=MOTORS)


def test_joint_names_that_a_file_leaves_open_are_asked_for(tmp_path):
    with pytest.raises(TrueupError, match="names in the SDK's order"):
        read_layout(deploy_file(tmp_path))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a: !!python/object/apply:os.system [echo]", "not plain YAML"),
        ("a: {b: 1, b: 2}", "'b' stands twice"),
        ("- 1", "mapping"),
        ("a: 1", "no layout that trueup knows"),
        ("a: " + "[" * 5000, "nested too deeply|not plain YAML"),
        ("a: {b: [\x00]}", "not plain YAML"),
        ("x: " + "y" * 200_000, "at most"),
        (GROWING, "more than"),
    ],
)
def test_yaml_that_is_not_plain_and_small_is_refused(tmp_path, text, named):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(TrueupError, match=named):
        read_layout(path)


def test_an_absent_layout_is_named(tmp_path):
    with pytest.raises(TrueupError, match="no such file"):
        read_layout(tmp_path / "config.yaml")
