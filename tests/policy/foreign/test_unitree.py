"""unitree_rl_lab's deploy.yaml: what may be left out, and what is refused by key."""

import numpy as np
import pytest
from made_policies import MOTORS, deploy_file

from trueup.core.errors import TrueupError
from trueup.policy.action import ActionMap
from trueup.policy.foreign.layout import read_layout

ACTION = {"scale": 0.5, "offset": 0.1}


def read(path):
    return read_layout(path, joint_names=MOTORS)


def test_the_policy_is_called_after_its_folder_and_one_number_stands_for_all_joints(tmp_path):
    (tmp_path / "flat").mkdir()
    layout = read(deploy_file(tmp_path / "flat", {"actions": {"JointPositionAction": ACTION}}))
    assert (layout.format, layout.name) == ("unitree_rl_lab", "flat")
    assert layout.action.scale == (0.5,) * 3
    np.testing.assert_allclose(ActionMap(layout.action).target(np.array([[1.0, 0.0, 90.0]])), [[0.6, 0.1, 45.1]])


def test_the_pose_of_observations_and_the_offset_of_actions_are_two_things(tmp_path):
    layout = read(deploy_file(tmp_path))
    assert layout.observation.default_pose == (0.3, 0.1, 0.2)
    assert layout.action.default_pose == (0.31, 0.11, 0.21)


def test_terms_have_the_length_of_their_own_history(tmp_path):
    spec = read(deploy_file(tmp_path)).observation
    # gyro twice, command once, joint positions three times, action once; three columns each
    assert spec.nactor == 3 * (2 + 1 + 3 + 1)
    assert spec.history == 3


@pytest.mark.parametrize(
    ("changes", "terms", "named"),
    [
        ({"actions": {}}, {}, "only JointPositionAction is understood, found none"),
        ({"actions": {"JointPositionAction": ACTION | {"joint_ids": [2, 1, 0]}}}, {}, "all 3 joints in order"),
        ({"actions": {"JointPositionAction": ACTION | {"clip": [[-1, 1]]}}}, {}, "one number for each joint"),
        ({"actions": {"JointPositionAction": ACTION | {"clip": [[1, -1]] * 3}}}, {}, "below its lower one"),
        ({"actions": {"JointPositionAction": ACTION | {"scale": [0.5]}}}, {}, "one number for each joint"),
        ({"damping": [1.0, 2.0, float("nan")]}, {}, "finite"),
        ({"step_dt": -0.02}, {}, "step_dt"),
        ({"step_dt": 1e-9}, {}, "control rate"),
        ({"joint_ids_map": [0, 1, 3]}, {}, "joint_ids_map: must hold each of 0..2 once"),
        ({"extra": 1}, {}, "extra"),
        ({}, {"base_ang_vel": {"history_length": 0}}, "history_length"),
        ({}, {"base_ang_vel": {"clip": [1.0, -1.0]}}, "gyro: clip"),
        ({}, {"velocity_commands": {"clip": [-1.0, 1.0]}}, "a command with clip"),
        ({}, {"base_ang_velocity": {}}, "did you mean 'base_ang_vel'"),
        ({}, {"frozen": True}, "'frozen' is not understood"),
        ({}, {"use_gym_history": True}, "one history_length for all terms"),
        ({}, {"scale_first": True}, "scale_first is not understood"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(tmp_path, changes, terms, named):
    with pytest.raises(TrueupError, match=named) as refused:
        read(deploy_file(tmp_path, changes, terms))
    assert refused.value.file == str(tmp_path / "deploy.yaml")


def test_names_of_another_robot_are_refused(tmp_path):
    with pytest.raises(TrueupError, match="for 4 joint names"):
        read_layout(deploy_file(tmp_path), joint_names=(*MOTORS, "d"))
    with pytest.raises(TrueupError, match="'a' stands twice"):
        read_layout(deploy_file(tmp_path), joint_names=("a", "a", "b"))


def test_motion_tracking_is_read_and_asks_for_its_reference(tmp_path):
    entry = {"params": {"command_name": "motion"}, "clip": None, "scale": [1.0] * 6, "history_length": 1}
    terms = {"motion_command": entry, "motion_anchor_ori_b": entry, "velocity_commands": "absent"}
    layout = read_layout(deploy_file(tmp_path, {"commands": {}}, terms), joint_names=MOTORS)
    signals = {term.signal: layout.observation.width(term.signal) for term in layout.observation.terms}
    assert (signals["reference"], signals["reference_rotation"]) == (6, 6)
    assert (layout.observation.ncommand, layout.command_low) == (0, ())


def test_groups_of_observations_are_refused_by_name(tmp_path):
    group = {"use_gym_history": True, "base_ang_vel": {"params": {}, "scale": [0.25] * 3, "history_length": 6}}
    with pytest.raises(TrueupError, match=r"observations.base_ang_vel: is a group"):
        read_layout(deploy_file(tmp_path, {}, {"base_ang_vel": group}), joint_names=MOTORS)


def test_ranges_of_the_command_are_kept(tmp_path):
    layout = read_layout(deploy_file(tmp_path), joint_names=MOTORS)
    assert (layout.command_low, layout.command_high) == ((-0.5, -0.3, -0.2), (1.0, 0.3, 0.2))


def test_a_robot_with_fewer_joints_than_the_sdk_numbers_is_refused(tmp_path):
    with pytest.raises(TrueupError, match=r"joint_ids_map: must hold each of 0..3 once, for 4 joint names"):
        read_layout(deploy_file(tmp_path, {"joint_ids_map": [3, 0, 1]}), joint_names=(*MOTORS, "d"))
