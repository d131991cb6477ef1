"""Layouts of our own: every key by hand, signs turned into the robot's directions, what is missing is asked for."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.action import ActionMap
from trueup.policy.foreign.layout import read_layout
from trueup.policy.foreign.sdk_orders import SDK_ORDERS, sdk_order
from trueup.policy.foreign.toml_layout import LayoutFile, build, merged
from trueup.policy.observation import ObservationBuilder
from trueup.policy.reading import Reading

TEXT = """
name = "toy"
control_hz = 50.0
joint_names = ["c", "a", "b"]
default_pose = [0.3, 0.1, 0.2]
kp = 20.0
kd = [1.0, 2.0, 3.0]
torque = 5.0

[action]
scale = [0.5, 0.25, 0.125]
clip = 4.0
observe_clipped = true

[[observation]]
signal = "gyro"
scale = 0.25

[[observation]]
signal = "command"

[[observation]]
signal = "joint_pos"
clip = [-1.0, 0.5]

[[observation]]
signal = "joint_vel"
scale = 0.1
clip = [-1.0, 0.5]
clip_scaled = true

[[observation]]
signal = "action"

[command]
low = [-1.0, -0.5, -2.0]
high = [1.0, 0.5, 2.0]
"""


def written(tmp_path, text=TEXT):
    path = tmp_path / "layout.toml"
    path.write_text(text)
    return path


def look(layout, joint_pos, joint_vel=(0.0, 0.0, 0.0)):
    reading = Reading(
        joint_pos=np.array([joint_pos]),
        joint_vel=np.array([joint_vel]),
        gyro=np.array([[4.0, 0.0, 0.0]]),
        gravity=np.array([[0.0, 0.0, -1.0]]),
    )
    asked, action = np.array([[1.0, 2.0, 3.0]], np.float32), np.array([[7.0, 8.0, 9.0]], np.float32)
    return ObservationBuilder(layout.observation).restart(reading, asked, action)[0]


def test_every_key_is_where_it_belongs(tmp_path):
    layout = read_layout(written(tmp_path))
    assert (layout.format, layout.name, layout.control_hz) == ("trueup-layout", "toy", 50.0)
    assert layout.joint_names == ("c", "a", "b")
    assert (layout.kp, layout.kd, layout.torque) == ((20.0,) * 3, (1.0, 2.0, 3.0), (5.0,) * 3)
    assert (layout.command_low, layout.command_high) == ((-1.0, -0.5, -2.0), (1.0, 0.5, 2.0))
    found = look(layout, (1.3, 0.2, 0.1), (10.0, -30.0, 1.0))
    expected = [1.0, 0, 0, 1, 2, 3, 0.5, 0.1, -0.1, 0.5, -1.0, 0.1, 7, 8, 9]  # 1.0 and 1.0, -3.0 clipped
    np.testing.assert_allclose(found, expected, atol=1e-6)
    mapping, action = ActionMap(layout.action), np.array([[8.0, 1.0, -1.0]], np.float32)
    np.testing.assert_allclose(mapping.target(action), [[0.3 + 2.0, 0.35, 0.075]])
    np.testing.assert_array_equal(mapping.observed(action), [[4.0, 1.0, -1.0]])


def test_a_joint_that_turns_the_other_way_does_so_in_everything(tmp_path):
    """A policy in its own directions on a mirrored joint equals the turned layout on the robot's."""
    plain = read_layout(written(tmp_path))
    signs = np.array([1.0, -1.0, 1.0])
    turned = read_layout(written(tmp_path, TEXT.replace("[action]", "signs = [1, -1, 1]\n[action]", 1)))
    assert turned.signs == (1, -1, 1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, v = rng.normal(0, 1, 3), rng.normal(0, 10, 3)
        np.testing.assert_allclose(look(turned, signs * q, signs * v), look(plain, q, v), atol=1e-5)
        action = rng.normal(0, 3, (1, 3)).astype(np.float32)
        mine, theirs = ActionMap(turned.action).target(action), ActionMap(plain.action).target(action)
        np.testing.assert_allclose(mine, signs * theirs, atol=1e-6)


def test_limits_of_targets_turn_with_their_joint(tmp_path):
    limits = "low = [-1.0, -0.5, -1.0]\nhigh = [1.0, 2.0, 1.0]\n"
    text = TEXT.replace("[action]", f"signs = [1, -1, 1]\n[action]\n{limits}", 1)
    layout = read_layout(written(tmp_path, text))
    assert (layout.action.low, layout.action.high) == ((-1.0, -2.0, -1.0), (1.0, 0.5, 1.0))


def test_histories_may_be_whole_frames_or_of_each_term(tmp_path):
    whole = read_layout(written(tmp_path, "history = 3\n" + TEXT)).observation
    assert (whole.history, whole.by_term, whole.nactor) == (3, False, 45)
    text = TEXT.replace('signal = "gyro"', 'signal = "gyro"\nhistory = 4')
    own = read_layout(written(tmp_path, text)).observation
    assert (own.history, own.by_term, own.nactor) == (4, True, 15 + 9)
    with pytest.raises(TrueupError, match="not both"):
        read_layout(written(tmp_path, "history = 3\n" + text))


def test_an_offset_takes_the_place_of_the_pose_in_targets_only(tmp_path):
    layout = read_layout(written(tmp_path, TEXT.replace("[action]", "[action]\noffset = [0.0, 0.0, 1.0]", 1)))
    assert layout.action.default_pose == (0.0, 0.0, 1.0)
    assert layout.observation.default_pose == (0.3, 0.1, 0.2)


def test_everything_that_is_missing_is_listed_with_how_to_give_it(tmp_path):
    with pytest.raises(
        TrueupError, match=r"control_hz \(--hz\), kp, kd, action, observation: give it in a layout TOML"
    ):
        read_layout(written(tmp_path, 'joint_names = ["a"]\ndefault_pose = [0.0]\n'))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("kd =", "kdd =", "kdd"),
        ('signal = "gyro"', 'signal = "gyroo"', "unknown signal 'gyroo'"),
        ("scale = [0.5, 0.25, 0.125]", "scale = [0.5]", "action.scale: 1 numbers for 3 joints"),
        ("default_pose = [0.3, 0.1, 0.2]", "default_pose = [0.3]", "default_pose: 1 numbers for 3 joints"),
        ("kd = [1.0, 2.0, 3.0]", "kd = [1.0]", "kd: 1 numbers for 3 joints"),
        ("[action]", "signs = [1, 2, 1]\n[action]", "signs: needs 1 or -1"),
        ("[action]", "[action]\nlow = [0.0, 0.0, 0.0]", "action.low and action.high: give both"),
        ("control_hz = 50.0", "control_hz = inf", "control rate"),
        ("low = [-1.0, -0.5, -2.0]", "low = [-1.0]", "command"),
        ("kp = 20.0", "kp = nan", "finite"),
        ('"c", "a", "b"', '"c", "a", "a"', "twice"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path, old, new, named):
    assert old in TEXT
    with pytest.raises(TrueupError, match=named):
        read_layout(written(tmp_path, TEXT.replace(old, new, 1)))


def test_what_one_source_leaves_open_another_completes():
    over = LayoutFile(control_hz=40.0, name="mine")
    under = LayoutFile(control_hz=50.0, joint_names=("a",), default_pose=(0.0,), kp=1.0, kd=1.0)
    found = merged(over, under)
    assert (found.name, found.control_hz, found.joint_names) == ("mine", 40.0, ("a",))
    with pytest.raises(ValueError, match="does not say action, observation"):
        build(found, "test")


def test_known_sdks_are_found_by_their_joints_in_any_order():
    for name, order in SDK_ORDERS.items():
        assert sdk_order(tuple(reversed(order))) == (name, order)
        assert len(set(order)) == len(order) in (12, 29)
    assert sdk_order(("a", "b")) is None
