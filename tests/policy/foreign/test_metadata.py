"""Layouts from ONNX metadata, as mjlab and Isaac Lab's users write them: text with commas."""

import pytest

from trueup.policy.foreign import metadata
from trueup.policy.foreign.toml_layout import build

MJLAB = {
    "run_path": "team/project/abc123",
    "joint_names": "a,b,c",
    "joint_stiffness": "20.000,30.000,40.000",
    "joint_damping": "1.000,2.000,3.000",
    "default_joint_pos": "0.100,-0.200,0.300",
    "command_names": "twist",
    "observation_names": "base_ang_vel,projected_gravity,joint_pos,joint_vel,actions,command",
    "action_scale": "0.250,0.500,0.125",
}
NEWER = MJLAB | {
    "observation_terms_scale": "0.200,1.000,1.000,[0.05, 0.05, 0.1],1.000,1.000",
    "observation_terms_history_length": "5,0,1,3,1,1",
    "observation_terms_clip": "[-inf, inf],[-1.0, 1.0],[-inf, inf],[-inf, inf],[-inf, inf],[-inf, inf]",
    "observation_terms_flatten_history_dim": "True,True,True,True,True,True",
    "control_hz": "50.0",
}


def test_numbers_stand_in_the_order_of_the_names():
    layout = build(metadata.read(NEWER), "onnx-metadata", metadata.NOTES)
    assert (layout.name, layout.control_hz) == ("abc123", 50.0)
    assert layout.joint_names == ("a", "b", "c")
    assert (layout.kp, layout.kd) == ((20.0, 30.0, 40.0), (1.0, 2.0, 3.0))
    assert layout.action.scale == (0.25, 0.5, 0.125)
    assert layout.action.default_pose == layout.observation.default_pose == (0.1, -0.2, 0.3)
    assert layout.action.clip is None
    signals = [(term.signal, term.scale, term.history, term.clip) for term in layout.observation.terms]
    assert signals[0] == ("gyro", 0.2, 5, ())
    assert signals[1] == ("gravity", 1.0, 1, ((-1.0, 1.0),))
    assert signals[3] == ("joint_vel", (0.05, 0.05, 0.1), 3, ())
    assert [one[0] for one in signals[4:]] == ["action", "command"]
    assert layout.observation.by_term
    assert layout.notes


def test_what_older_files_leave_open_is_asked_for():
    assert metadata.has_layout(MJLAB)
    assert not metadata.has_layout({"producer": "x"})
    with pytest.raises(ValueError, match=r"does not say control_hz \(--hz\), observation: give it in a layout TOML"):
        build(metadata.read(MJLAB), "onnx-metadata")


@pytest.mark.parametrize(
    ("key", "value", "hz"), [("control_dt", "0.02", 50.0), ("step_dt", "0.005", 200.0), ("control_hz", "100", 100.0)]
)
def test_rates_are_taken_where_a_file_has_them(key, value, hz):
    assert metadata.read(MJLAB | {key: value}).control_hz == pytest.approx(hz)


def test_one_scale_for_all_joints_and_offsets_are_taken():
    said = metadata.read(
        NEWER | {"action_scale": "0.25", "action_offset": "0.0,0.1,0.2", "joint_torque_limits": "1,2,3"}
    )
    layout = build(said, "onnx-metadata")
    assert layout.action.scale == (0.25,) * 3
    assert layout.action.default_pose == (0.0, 0.1, 0.2)
    assert layout.torque == (1.0, 2.0, 3.0)


def test_names_may_stand_as_a_python_list():
    text = "['base_ang_vel', 'projected_gravity', 'joint_pos', 'joint_vel', 'actions', 'command']"
    assert len(metadata.read(NEWER | {"observation_names": text}).observation) == 6


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"joint_damping": "1.0,2.0"}, "joint_damping has 2 numbers for 3 joints"),
        ({"joint_stiffness": "a,b,c"}, "joint_stiffness is not a list of numbers: 'a,b,c'"),
        ({"default_joint_pos": "0.1,nan,0.2"}, "default_joint_pos needs finite numbers"),
        ({"observation_names": "base_lin_vel,joint_pos"}, "observes 'base_lin_vel' .the speed of the base."),
        ({"observation_names": "height_scan"}, "a map of heights"),
        ({"observation_names": "joint_poss"}, "'joint_poss' is not understood .did you mean 'joint_pos'"),
        ({"command_names": "motion"}, "the command motion is not a velocity"),
        ({"observation_terms_scale": "1.0,1.0"}, "observation_terms_scale has 2 entries for 6 observations"),
        ({"observation_terms_clip": NEWER["observation_terms_clip"].replace("[-1.0, 1.0]", "[-1.0, inf]")}, "one side"),
        ({"control_hz": "0"}, "control_hz is 0"),
        ({"action_names": "a,c,b"}, "action_names are other joints"),
    ],
)
def test_what_is_not_understood_is_refused_by_its_key(changes, named):
    with pytest.raises(ValueError, match=named):
        metadata.read(NEWER | changes)


def test_missing_keys_are_named():
    with pytest.raises(ValueError, match="joint_damping, action_scale is missing"):
        metadata.read({k: v for k, v in NEWER.items() if k not in ("joint_damping", "action_scale")})
