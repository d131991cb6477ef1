"""Cycles that actions are added to: offsets by hand, what is refused, and the way into targets."""

import msgspec
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.action import ActionMap, ActionSpec
from trueup.policy.cycle import Cycle, CycleSpec

SPEC = CycleSpec(rows=((0.0, 1.0), (2.0, 1.0), (0.0, 1.0), (-2.0, 1.0)), full_at=0.2)  # two joints
ACTION = ActionSpec(
    joint_names=("a", "b", "c"),
    default_pose=(0.1, 0.2, 0.3),
    controlled_joints=("c", "a"),
    scale=(0.5, 0.5),
    cycle=SPEC,
)


def offset(phase, *command):
    return Cycle(SPEC).offset(np.array([phase]), np.array([command], np.float32))[0].tolist()


@pytest.mark.parametrize(
    ("phase", "swing"), [(0.0, 0.0), (0.25, 2.0), (0.375, 1.0), (0.75, -2.0), (0.875, -1.0), (1.25, 2.0)]
)
def test_rows_are_joined_by_lines_and_the_first_follows_the_last(phase, swing):
    assert offset(phase, 1.0) == pytest.approx([swing, 1.0])


def test_a_small_command_makes_the_gait_small_and_none_ends_it():
    assert offset(0.25, -0.5) == pytest.approx([2.0, 1.0])
    assert offset(0.25, 0.1) == pytest.approx([1.0, 0.5])
    assert offset(0.25, 0.06, -0.08) == pytest.approx([1.0, 0.5])  # the length counts
    assert offset(0.25, 0.0) == [0.0, 0.0]


def test_a_gait_that_never_ends_is_whole_at_any_command():
    always = msgspec.structs.replace(SPEC, full_at=None)
    assert Cycle(always).offset(np.array([0.25]), np.zeros((1, 1), np.float32)).tolist() == [[2.0, 1.0]]


def test_one_row_is_computed_as_many_are():
    rng = np.random.default_rng(0)
    phase, command = rng.uniform(0.0, 1.0, 50), rng.normal(0.0, 0.3, (50, 1)).astype(np.float32)
    alone = [Cycle(SPEC).offset(phase[k : k + 1], command[k : k + 1])[0] for k in range(50)]
    np.testing.assert_array_equal(Cycle(SPEC).offset(phase, command), alone)


def test_targets_are_the_pose_the_cycle_of_the_controlled_joints_and_the_action():
    action, command = np.array([[1.0, -1.0]], np.float32), np.array([[1.0]], np.float32)
    found = ActionMap(ACTION).target(action, None, command, np.array([0.25]))
    np.testing.assert_allclose(found, [[0.1 + 1.0 - 0.5, 0.2, 0.3 + 2.0 + 0.5]])
    with pytest.raises(TrueupError, match="give the command and the phase"):
        ActionMap(ACTION).target(action)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"rows": ((1.0, 2.0), (1.0,))}, "rows of one length"),
        ({"rows": ((1.0, 2.0),)}, "2 to 100000 rows"),
        ({"full_at": 0.0}, "full_at above 0"),
    ],
)
def test_a_cycle_that_cannot_be_is_refused_in_words(fields, named):
    with pytest.raises(ValueError, match=named):
        msgspec.structs.replace(SPEC, **fields)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"relative": True}, "not to both"),
        ({"controlled_joints": ("a",), "scale": (1.0,)}, "one column for each controlled joint"),
    ],
)
def test_an_action_spec_that_does_not_fit_its_cycle_is_refused(fields, named):
    with pytest.raises(ValueError, match=named):
        msgspec.structs.replace(ACTION, **fields)


def test_a_cycle_survives_its_file():
    assert msgspec.json.decode(msgspec.json.encode(ACTION), type=ActionSpec) == ACTION
