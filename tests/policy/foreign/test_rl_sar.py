"""rl_sar's config.yaml over base.yaml: defaults, what the config inherits, and what is refused by key."""

import numpy as np
import pytest
import yaml
from made_policies import rl_sar_files

from trueup.core.errors import TrueupError
from trueup.policy.action import ActionMap
from trueup.policy.foreign.layout import read_layout
from trueup.policy.observation import ObservationBuilder
from trueup.policy.reading import Reading


def test_scales_that_are_not_written_are_one_and_one_action_scale_is_for_all(tmp_path):
    absent = ("ang_vel_scale", "dof_pos_scale", "dof_vel_scale", "commands_scale", "torque_limits")
    layout = read_layout(rl_sar_files(tmp_path, dict.fromkeys(absent, "absent") | {"action_scale": 0.25}))
    scales = {term.signal: term.scale for term in layout.observation.terms}
    assert scales["gyro"] == scales["joint_pos"] == scales["joint_vel"] == 1.0
    assert scales["command"] == (1.0, 1.0, 1.0)
    assert layout.action.scale == (0.25, 0.25, 0.25)
    assert layout.torque == ()


def test_the_config_s_own_keys_win_over_the_base_file(tmp_path):
    layout = read_layout(rl_sar_files(tmp_path, {"decimation": 10, "dt": 0.002}, {"decimation": 2}))
    assert layout.control_hz == pytest.approx(50.0)
    same_order = {"joint_mapping": [0, 1, 2], "torque_limits": "absent"}
    inherited = read_layout(rl_sar_files(tmp_path, same_order, {"torque_limits": [1.0, 2.0, 3.0]}))
    assert inherited.torque == (1.0, 2.0, 3.0)


def test_without_action_limits_targets_are_free_and_the_policy_sees_what_it_said(tmp_path):
    none = {"clip_actions_lower": None, "clip_actions_upper": None}
    mapping = ActionMap(read_layout(rl_sar_files(tmp_path, none)).action)
    said = np.array([[100.0, 0.0, 0.0]], np.float32)
    np.testing.assert_allclose(mapping.target(said), [[50.3, 0.1, 0.2]])
    np.testing.assert_array_equal(mapping.observed(said), said)


def test_a_motion_to_follow_comes_with_the_reading(tmp_path):
    names = ["whole_body_tracking/motion_command", "whole_body_tracking/motion_anchor_ori_b"]
    layout = read_layout(rl_sar_files(tmp_path, {"observations": names, "num_observations": 12}))
    assert [term.signal for term in layout.observation.terms] == ["reference", "reference_rotation"]
    nothing, three = np.zeros((1, 3)), np.zeros((1, 3), np.float32)
    motion = {"reference": np.arange(6.0)[None], "reference_rotation": 10.0 + np.arange(6.0)[None]}
    found = ObservationBuilder(layout.observation).restart(
        Reading(joint_pos=nothing, joint_vel=nothing, others=motion), three, three
    )
    assert found[0].tolist() == [*range(6), *range(10, 16)]


@pytest.mark.parametrize(
    ("config", "base", "named"),
    [
        ({"clip_actions_upper": [1.0]}, {}, "3 clip_actions_lower for 1 clip_actions_upper"),
        ({"clip_actions_lower": [9.0] * 3}, {}, "below its lower one"),
        ({}, {"num_of_dofs": 4}, "num_of_dofs is 4, but there are 3"),
        ({}, {"dt": 0.0}, "dt"),
        ({}, {"dt": 2.0}, "control rate must lie between 1 and 10000 Hz"),
        ({}, {"decimation": 0}, "decimation"),
        ({}, {"decimation": 10**400}, "decimation"),
        ({}, {"joint_names": ["a", "a", "b"]}, "'a' stands twice"),
        ({"observations_history": [-1]}, {}, "observations_history"),
        ({"observations_history": [2000]}, {}, "observations_history"),
        ({"observations_history_priority": "frame"}, {}, "observations_history_priority"),
        ({"commands_scale": [1.0, 1.0]}, {}, "num_observations: says 18, but its terms have 17"),
        ({"torque_limits": [1.0]}, {}, "torque: 1 numbers for 3 joints"),
        ({"rl_kp": [1.0, 2.0, float("inf")]}, {}, "finite"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(tmp_path, config, base, named):
    with pytest.raises(TrueupError, match=named) as refused:
        read_layout(rl_sar_files(tmp_path, config, base))
    assert refused.value.file == str(tmp_path / "config.yaml")


def test_a_base_file_of_another_robot_is_named_with_the_nearest(tmp_path):
    config = rl_sar_files(tmp_path)
    (tmp_path / "base.yaml").write_text(yaml.safe_dump({"toi": {"dt": 0.005}}))
    with pytest.raises(TrueupError, match=r"base\.yaml: has no robot 'toy'.*did you mean 'toi'"):
        read_layout(config)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"command_mapping": [0, 1, 2], "state_mapping": [0, 1, 2]}, "command_mapping: this is an earlier format"),
        ({"hip_scale_reduction": 0.5}, "hip_scale_reduction: this is an earlier format.*joint_mapping"),
        ({"observations": ["ang_vel", "g1_phase"]}, "'g1_phase' is not understood"),
        ({"observations": ["ang_vel", "g1_mimic_phase"]}, "'g1_mimic_phase' is not understood"),
        ({"use_pmtg_controller": True}, "use_pmtg_controller"),
        ({"wheel_indices": [2]}, "has wheels"),
    ],
)
def test_other_policies_of_the_project_are_refused_by_what_is_not_understood(tmp_path, changes, named):
    with pytest.raises(TrueupError, match=named):
        read_layout(rl_sar_files(tmp_path, changes))


def test_the_simulator_that_an_older_file_names_does_not_matter(tmp_path):
    assert read_layout(rl_sar_files(tmp_path, {"framework": "isaacgym"})).joint_names == ("c", "a", "b")


def test_six_frames_newest_first_stand_as_in_himloco(tmp_path):
    layout = read_layout(rl_sar_files(tmp_path, {"observations_history": [0, 1, 2, 3, 4, 5]}))
    assert layout.observation.nactor == 6 * 18
    assert layout.observation.columns[:2].tolist() == [5 * 18, 5 * 18 + 1]  # the newest frame is the last that is kept
