"""Where each number of an observation stands: terms, scales, clips, ages; and specs that cannot be laid out."""

import msgspec
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.observation import ObservationBuilder, ObservationSpec, Term
from trueup.policy.reading import Reading, gravity_in_body

SPEC = ObservationSpec(
    joint_names=("a", "b"),
    default_pose=(0.5, -0.5),
    terms=(Term("joint_vel", 0.1), Term("joint_pos")),
    ncommand=1,
    naction=2,
)
NOTHING = np.zeros((1, 1), np.float32)
ACTION = np.zeros((1, 2), np.float32)


def changed(**fields) -> ObservationSpec:
    return msgspec.structs.replace(SPEC, **fields)


def reading(a=0.0, b=0.0, speed=0.0, **others) -> Reading:
    return Reading(joint_pos=np.array([[a, b]]), joint_vel=np.array([[speed, -speed]]), others=others)


def seen(spec: ObservationSpec, *readings: Reading) -> list[float]:
    """The last of several observations of one episode."""
    builder = ObservationBuilder(spec)
    out = builder.restart(readings[0], NOTHING, ACTION)
    for one in readings[1:]:
        out = builder.step(one, NOTHING, ACTION)
    return out[0].round(5).tolist()


def test_terms_stand_in_their_own_order_scaled_and_relative_to_the_default_pose():
    assert SPEC.slices == (slice(0, 2), slice(2, 4))
    assert seen(SPEC, reading(0.75, 0.0, 3.0)) == pytest.approx([0.3, -0.3, 0.25, 0.5])


def test_joints_that_turn_all_the_way_are_seen_as_sines_then_cosines():
    spec = changed(terms=(Term("joint_angle", (1.0, 2.0, 3.0, 4.0)),))
    assert seen(spec, reading(np.pi / 2, np.pi)) == pytest.approx([1.0, 0.0, 0.0, -4.0], abs=1e-5)
    assert seen(spec, reading(np.pi / 2 + 2 * np.pi, -np.pi)) == pytest.approx([1.0, 0.0, 0.0, -4.0], abs=1e-5)


def test_a_clock_counts_shares_of_its_period_from_the_start_of_the_episode():
    spec = changed(terms=(Term("clock"),), clock_step=0.125)  # eight control steps
    half = 0.5**0.5
    expected = [(0, 1), (half, half), (1, 0), (half, -half), (0, -1), (-half, -half), (-1, 0), (-half, half), (0, 1)]
    for count, pair in enumerate(expected, start=1):
        assert seen(spec, *[reading()] * count) == pytest.approx(pair, abs=1e-5)


def test_a_clock_of_one_row_begins_again_without_the_others():
    builder = ObservationBuilder(changed(terms=(Term("clock"),), clock_step=0.25, history=2), 2)
    command, action, rows = np.zeros((2, 1), np.float32), np.zeros((2, 2), np.float32), np.zeros((2, 2))
    both = Reading(joint_pos=rows, joint_vel=rows)
    builder.restart(both, command, action)
    builder.step(both, command, action)
    alone = builder.restart(reading(), NOTHING, ACTION, np.array([1]))
    np.testing.assert_allclose(alone, [[0, 1, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(builder.step(both, command, action), [[1, 0, 0, -1], [0, 1, 1, 0]], atol=1e-6)


def test_a_clip_acts_before_the_scale_or_after_it():
    bounds = ((-0.2, 0.2), (-5.0, 0.1))
    before, after = (changed(terms=(Term("joint_vel", 0.1, bounds, scaled),)) for scaled in (False, True))
    fast = reading(speed=-4.0)  # -4 and 4 rad/s
    assert seen(before, fast) == pytest.approx([-0.02, 0.01])
    assert seen(after, fast) == pytest.approx([-0.2, 0.1])


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({}, [1, -1, 10, 20, 2, -2, 11, 21, 3, -3, 12, 22]),
        ({"by_term": True}, [1, -1, 2, -2, 3, -3, 10, 20, 11, 21, 12, 22]),
        ({"ages": (0, 2)}, [3, -3, 12, 22, 1, -1, 10, 20]),
        ({"ages": (1,), "by_term": True}, [2, -2, 11, 21]),
        ({"by_term": True, "terms": (Term("joint_vel", history=1), Term("joint_pos"))},
         [3, -3, 10, 20, 11, 21, 12, 22]),
    ],
)  # fmt: skip
def test_frames_stand_oldest_first_or_in_the_order_of_the_ages(layout, expected):
    spec = changed(default_pose=(0.0, 0.0), terms=(Term("joint_vel"), Term("joint_pos")), history=3)
    spec = msgspec.structs.replace(spec, **layout)
    assert seen(spec, *(reading(10 + k, 20 + k, 1 + k) for k in range(3))) == expected
    assert spec.nactor == len(expected)


def test_a_new_episode_of_one_row_leaves_the_past_of_the_others():
    builder, two = ObservationBuilder(changed(terms=(Term("joint_vel"),), history=2), 2), np.zeros((2, 1), np.float32)

    def at(*speeds):
        values = np.array(speeds)[:, None] * np.ones(2)
        return Reading(joint_pos=np.zeros_like(values), joint_vel=values)

    builder.restart(at(1, 2), two, np.zeros((2, 2), np.float32))
    alone = builder.restart(at(9), NOTHING, ACTION, np.array([1]))
    assert alone.tolist() == [[9, 9, 9, 9]]
    both = builder.step(at(3, 4), two, np.zeros((2, 2), np.float32))
    assert both.tolist() == [[1, 1, 3, 3], [9, 9, 4, 4]]


def test_a_signal_of_the_task_comes_with_the_reading_and_is_missed_by_name():
    spec = changed(terms=(Term("heights", 2.0),), widths={"heights": 3})
    assert seen(spec, reading(heights=np.array([[1.0, 2.0, 3.0]]))) == [2.0, 4.0, 6.0]
    with pytest.raises(TrueupError, match="observes 'heights'"):
        seen(spec, reading())


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"default_pose": (0.0,)}, "default_pose"),
        ({"history": 0}, "history must"),
        ({"history": 10**12}, "history must"),
        ({"ages": (1,)}, r"ages must lie in 0\.\.0"),
        ({"terms": (Term("joint_pso"),)}, "unknown signal 'joint_pso'"),
        ({"terms": (Term("tool_error"),)}, "needs a chain"),
        ({"terms": (Term("clock"),)}, "needs a clock_step"),
        ({"clock_step": -0.1}, r"clock_step must lie in 0\.\.0\.5"),
        ({"terms": (Term("joint_pos", (1.0, 2.0, 3.0)),)}, "3 scales for 2 columns"),
        ({"terms": (Term("joint_pos", clip=((1.0, -1.0),)),)}, "clip needs"),
        ({"terms": (Term("joint_pos", history=1),)}, "needs by_term"),
        ({"terms": (Term("far"),), "widths": {"far": 10**12}}, "columns"),
        ({"terms": (Term("far"),), "widths": {"far": -1}}, "columns"),
    ],
)
def test_a_spec_that_cannot_be_laid_out_is_refused_in_words(fields, named):
    with pytest.raises(ValueError, match=named):
        changed(**fields)


@pytest.mark.parametrize(
    ("quat", "down"),
    [
        ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, -1.0)),
        ((0.5**0.5, 0.5**0.5, 0.0, 0.0), (0.0, -1.0, 0.0)),  # rolled to the right: the body's y axis points up
        ((0.5**0.5, 0.0, 0.5**0.5, 0.0), (1.0, 0.0, 0.0)),  # nose down: gravity is ahead
        ((0.5**0.5, 0.0, 0.0, 0.5**0.5), (0.0, 0.0, -1.0)),  # a turn about the vertical is not seen
    ],
)
def test_gravity_is_seen_from_the_body(quat, down):
    np.testing.assert_allclose(gravity_in_body(np.array([quat])), [down], atol=1e-12)
