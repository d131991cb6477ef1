"""Actions become targets: scale, limits, clips and the order of joints, each number worked out by hand."""

import msgspec
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.action import ActionMap, ActionSpec, JointOrder

SPEC = ActionSpec(
    joint_names=("a", "b", "c"),
    default_pose=(0.1, 0.2, 0.3),
    low=(-1.0, -0.5, -1.0),
    high=(1.0, 0.5, 1.0),
    controlled_joints=("c", "a"),
    scale=(0.5, 2.0),
    clip=1.0,
)


def changed(**fields) -> ActionSpec:
    return msgspec.structs.replace(SPEC, **fields)


def rows(*values):
    return np.array([values], np.float32)


def test_each_output_moves_its_own_joint_and_the_rest_stay_in_the_default_pose():
    mapping = ActionMap(SPEC)
    assert mapping.naction == 2
    np.testing.assert_allclose(mapping.target(rows(0.5, -0.25)), [[0.1 - 2.0 * 0.25, 0.2, 0.3 + 0.5 * 0.5]])


def test_actions_are_clipped_before_they_are_scaled_and_targets_afterwards():
    # c: 0.3 + 0.5 * 1 stays inside its limit; a: 0.1 + 2 * 1 does not
    np.testing.assert_allclose(ActionMap(SPEC).target(rows(7.0, 7.0)), [[1.0, 0.2, 0.8]])
    np.testing.assert_allclose(ActionMap(changed(clip=None)).target(rows(-7.0, 0.0)), [[0.1, 0.2, -1.0]])


def test_each_action_may_have_a_clip_of_its_own():
    mapping = ActionMap(changed(clip=((-0.2, 0.4), (0.0, 0.1))))
    np.testing.assert_allclose(mapping.target(rows(1.0, -1.0)), [[0.1, 0.2, 0.3 + 0.5 * 0.4]])


def test_one_sided_and_absent_limits_leave_the_other_side_free():
    free = changed(low=(), high=(), clip=None)
    np.testing.assert_allclose(ActionMap(free).target(rows(0.0, 50.0)), [[100.1, 0.2, 0.3]])
    above = ActionMap(msgspec.structs.replace(free, high=SPEC.high))
    np.testing.assert_allclose(above.target(rows(0.0, 50.0)), [[1.0, 0.2, 0.3]])
    np.testing.assert_allclose(above.target(rows(0.0, -50.0)), [[-99.9, 0.2, 0.3]])


def test_the_policy_sees_its_own_output_unless_the_clipped_one_is_asked_for():
    said = rows(3.0, -0.5)
    assert ActionMap(SPEC).observed(said) is said
    seen = ActionMap(changed(observe_clipped=True)).observed(said)
    np.testing.assert_array_equal(seen, [[1.0, -0.5]])
    assert seen.dtype == np.float32


def test_relative_targets_add_up_until_the_limit_and_leave_what_was_given_alone():
    mapping, before = ActionMap(changed(relative=True)), np.array([[0.1, 0.2, 0.3]])
    found = [before]
    for _ in range(3):
        found.append(mapping.target(rows(0.4, 0.2), found[-1]))
    np.testing.assert_allclose(np.array(found)[:, 0, 0], [0.1, 0.5, 0.9, 1.0])
    np.testing.assert_allclose(np.array(found)[:, 0, 2], [0.3, 0.5, 0.7, 0.9])
    np.testing.assert_array_equal(before, [[0.1, 0.2, 0.3]])


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"default_pose": (0.1,)}, "one number for each joint"),
        ({"low": (-1.0,)}, "one number for each joint"),
        ({"scale": (0.5,)}, "one number for each joint"),
        ({"clip": ((-1.0, 1.0),)}, "for each action"),
        ({"controlled_joints": ("c", "aa")}, "'aa' is not a joint"),
        ({"controlled_joints": ("c", "c")}, "'c' twice"),
        ({"low": (-1.0, 0.6, -1.0)}, "below"),
        ({"clip": ((1.0, -1.0), (-1.0, 1.0))}, "below"),
        ({"clip": -1.0}, "below"),
    ],
)
def test_a_spec_that_does_not_fit_is_refused_in_words(fields, named):
    with pytest.raises(ValueError, match=named):
        changed(**fields)


def test_a_robot_with_other_joints_is_told_which():
    with pytest.raises(TrueupError, match="different joints: c, d"):
        JointOrder(("a", "b", "c"), ("a", "b", "d"))
    with pytest.raises(TrueupError, match="one twice"):
        JointOrder(("a", "b"), ("a", "b", "b"))


def test_columns_go_to_the_joint_of_their_name_and_equal_orders_cost_no_copy():
    order, values = JointOrder(("c", "a", "b"), ("a", "b", "c")), np.array([[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(order.to_policy(values), [[3.0, 1.0, 2.0]])
    np.testing.assert_array_equal(order.to_robot(np.array([3.0, 1.0, 2.0])), [1.0, 2.0, 3.0])
    assert np.shares_memory(JointOrder(("a", "b", "c"), ("a", "b", "c")).to_policy(values), values)


def test_residual_actions_are_added_to_the_first_columns_of_the_command():
    mapping = ActionMap(changed(residual=True))
    command = rows(0.05, -0.1, 0.2, 9.0)  # three joints, then what else is asked
    np.testing.assert_allclose(
        mapping.target(rows(0.5, -0.25), command=command), [[0.1 + 0.05 - 0.5, 0.2 - 0.1, 0.3 + 0.2 + 0.25]], atol=1e-6
    )
    with pytest.raises(TrueupError, match="reference motion"):
        mapping.target(rows(0.5, -0.25))
    with pytest.raises(TrueupError, match="reference motion"):
        mapping.target(rows(0.5, -0.25), command=rows(0.0, 0.0))
    with pytest.raises(ValueError, match="not both"):
        ActionMap(ActionSpec(**msgspec.structs.asdict(SPEC) | {"residual": True, "relative": True}))
