"""The delay line against an integral computed the slow way; reset, restore, refusals, speed."""

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.core.errors import TrueupError
from trueup.models.delay import DelayLine
from trueup.models.values import FloatArray

DT = 0.002


class SlowDelay:
    """Mean of the shifted staircase over each physics step, by cutting it at every switch."""

    def __init__(self, start: float) -> None:
        self.switches: list[tuple[float, float]] = [(-np.inf, start)]  # (time in physics steps, command from then on)
        self.now = 0.0

    def step(self, command: float, substeps: int, delay_steps: float) -> list[float]:
        self.switches.append((self.now, command))
        seen = [self._mean(self.now + s - delay_steps) for s in range(substeps)]
        self.now += substeps
        return seen

    def _mean(self, begin: float) -> float:
        total = 0.0
        for k, (since, value) in enumerate(self.switches):
            until = self.switches[k + 1][0] if k + 1 < len(self.switches) else np.inf
            total += value * max(0.0, min(until, begin + 1.0) - max(since, begin))
        return total


def make(nsim: int = 1, njoint: int = 1, delay_s: Any = 0.0, max_delay_s: float = 10 * DT) -> DelayLine:
    return DelayLine(nsim, njoint, dt_s=DT, max_delay_s=max_delay_s, delay_s=delay_s)


def run(line: DelayLine, commands: FloatArray, substeps: int) -> FloatArray:
    """Return (nsim, T substeps, njoint) for commands (T, nsim, njoint)."""
    return np.concatenate([line.step(command, substeps) for command in commands], axis=1)


def test_delay_of_two_and_a_half_steps_matches_numbers_by_hand() -> None:
    line = make(delay_s=2.5 * DT)
    line.reset(None, 1.0)
    first = line.step(np.array([[3.0]]), 4)
    second = line.step(np.array([[7.0]]), 4)
    np.testing.assert_allclose(first[0, :, 0], [1.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(second[0, :, 0], [3.0, 3.0, 5.0, 7.0])


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_fast_line_equals_the_slow_integral(data: st.DataObject) -> None:
    nsim, njoint = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    longest = data.draw(st.floats(0.0, 9.0))
    steps = st.floats(0.0, 1.0).map(lambda share: share * longest)
    values = st.floats(-10.0, 10.0)

    def draw(kind: st.SearchStrategy[float], columns: int) -> FloatArray:
        numbers = data.draw(st.lists(kind, min_size=nsim * columns, max_size=nsim * columns))
        return np.array(numbers).reshape(nsim, columns)

    line = DelayLine(nsim, njoint, dt_s=1.0, max_delay_s=longest)
    start = draw(values, njoint)
    line.reset(None, start)
    slow = [[SlowDelay(start[i, j]) for j in range(njoint)] for i in range(nsim)]
    for _ in range(data.draw(st.integers(1, 8))):
        if data.draw(st.booleans()):
            line.set_delay(draw(steps, data.draw(st.sampled_from([1, njoint]))))
        substeps = data.draw(st.integers(1, 6))
        command, delay = draw(values, njoint), line.delay_s
        seen = line.step(command, substeps)
        for i in range(nsim):
            for j in range(njoint):
                expected = slow[i][j].step(command[i, j], substeps, delay[i, j])
                np.testing.assert_allclose(seen[i, :, j], expected, rtol=0.0, atol=1e-12)


def test_no_delay_returns_the_command_bit_for_bit() -> None:
    line = make(2, 3)
    line.reset(None, np.inf)  # even a history that no arithmetic survives
    command = np.array([[-0.0, 1e-310, 0.1], [np.pi, -1e300, 3.0]])
    seen = line.step(command, 4)
    for substep in range(4):
        assert seen[:, substep].tobytes() == command.tobytes()


def test_held_command_comes_out_exactly_itself_under_any_delay() -> None:
    delays = np.random.default_rng(0).uniform(0, 10 * DT, (50, 1))
    line, command = make(50, 2, delay_s=delays), np.full((50, 2), 0.1)
    line.reset(None, 0.1)
    np.testing.assert_array_equal(line.step(command, 7), np.full((50, 7, 2), 0.1))


def test_whole_delay_is_a_plain_shift() -> None:
    commands = np.random.default_rng(1).normal(size=(12, 1, 1))
    seen = run(make(delay_s=8 * DT), commands, substeps=4)[0, :, 0]
    np.testing.assert_array_equal(seen[8:], np.repeat(commands[:, 0, 0], 4)[:-8])
    np.testing.assert_array_equal(seen[:8], 0.0)


def test_delayed_command_is_continuous_in_the_delay() -> None:
    delays = np.linspace(0.0, 10 * DT, 4001)
    commands = np.broadcast_to(np.random.default_rng(2).uniform(-1, 1, (8, 1, 1)), (8, len(delays), 1))
    seen = run(make(len(delays), 1, delays[:, None]), commands, substeps=4)
    steepest = 2.0 / DT  # the largest jump of these commands, spread over one physics step
    assert np.max(np.abs(np.diff(seen, axis=0))) <= steepest * (delays[1] - delays[0]) * (1 + 1e-9)


def test_mean_of_what_is_seen_moves_by_the_delay() -> None:
    """A unit step seen through a delay D loses exactly D/dt physics steps of it, for any D."""
    delays = np.random.default_rng(3).uniform(0, 10 * DT, (30, 1))
    seen = run(make(30, 1, delays), np.ones((5, 30, 1)), substeps=4)
    np.testing.assert_allclose(np.sum(1.0 - seen, axis=1), delays / DT, rtol=1e-12, atol=1e-12)


def test_one_row_equals_row_k_of_many() -> None:
    rng = np.random.default_rng(4)
    delays, commands = rng.uniform(0, 10 * DT, (33, 12)), rng.normal(size=(15, 33, 12))
    together = run(make(33, 12, delays), commands, substeps=4)
    for k in (0, 16, 32):
        alone = run(make(1, 12, delays[k : k + 1]), commands[:, k : k + 1], substeps=4)
        np.testing.assert_array_equal(alone[0], together[k])


def test_one_delay_per_row_broadcasts_over_its_joints() -> None:
    rng = np.random.default_rng(5)
    delays, commands = rng.uniform(0, 10 * DT, (6, 1)), rng.normal(size=(9, 6, 3))
    by_row = run(make(6, 3, delays), commands, substeps=3)
    by_joint = run(make(6, 3, np.repeat(delays, 3, axis=1)), commands, substeps=3)
    np.testing.assert_array_equal(by_row, by_joint)


def test_delay_of_some_rows_can_change_between_steps() -> None:
    line, commands = make(3, 1, 2 * DT), np.arange(1.0, 9.0)[:, None, None] * np.ones((1, 3, 1))
    run(line, commands[:4], substeps=1)
    line.set_delay([[0.0], [4.5 * DT]], ids=np.array([0, 2]))
    np.testing.assert_allclose(line.step(commands[4], 1)[:, 0, 0], [5.0, 3.0, 0.5])
    np.testing.assert_allclose(line.delay_s[:, 0], [0.0, 2 * DT, 4.5 * DT])


def test_reset_touches_only_its_rows() -> None:
    line = make(3, 2, 6 * DT)
    run(line, np.ones((5, 3, 2)), substeps=4)
    line.reset(np.array([1]), [[5.0, 6.0]])
    seen = line.step(np.full((3, 2), 9.0), 4)
    np.testing.assert_array_equal(seen[0], np.ones((4, 2)))
    np.testing.assert_array_equal(seen[1], np.tile([5.0, 6.0], (4, 1)))
    np.testing.assert_array_equal(seen[2], np.ones((4, 2)))


def test_restored_line_continues_bit_for_bit() -> None:
    rng = np.random.default_rng(6)
    delays, commands = rng.uniform(0, 10 * DT, (4, 3)), rng.normal(size=(30, 4, 3))
    line, resumed = make(4, 3, delays), make(4, 3)
    run(line, commands[:17], substeps=4)
    run(resumed, commands[:3], substeps=7)  # another place on its tape
    state = line.state()
    expected = run(line, commands[17:], substeps=4)
    resumed.restore(state)
    np.testing.assert_array_equal(run(resumed, commands[17:], substeps=4), expected)


def test_state_is_a_copy() -> None:
    line = make(2, 1, 3 * DT)
    state = line.state()
    line.reset(None, 4.0)
    line.set_delay(0.0)
    np.testing.assert_array_equal(state["history"], 0.0)
    np.testing.assert_array_equal(state["delay_s"], 3 * DT)


def test_what_step_returned_is_not_touched_by_later_steps() -> None:
    line = make(2, 2, 2.5 * DT)
    first = line.step(np.ones((2, 2)), 4)
    kept = first.copy()
    run(line, np.full((20, 2, 2), 7.0), substeps=4)
    np.testing.assert_array_equal(first, kept)


def test_line_without_any_delay_and_control_steps_longer_than_the_tape_work() -> None:
    line = make(2, 1, 0.0, max_delay_s=0.0)
    for substeps in (1, 50, 3, 200):
        np.testing.assert_array_equal(line.step(np.full((2, 1), 3.0), substeps), np.full((2, substeps, 1), 3.0))


@pytest.mark.parametrize("bad", [-1e-9, 10.1 * DT, np.nan, np.inf])
def test_delay_out_of_range_is_refused_and_changes_nothing(bad: float) -> None:
    line = make(3, 2, DT)
    with pytest.raises(TrueupError, match="delay must be within 0 and max_delay_s"):
        line.set_delay([[0.0], [bad]], ids=np.array([0, 2]))
    np.testing.assert_array_equal(line.delay_s, DT)
    with pytest.raises(TrueupError, match="delay must be within"):
        make(delay_s=bad)


@pytest.mark.parametrize("name", ["dt_s", "max_delay_s"])
def test_line_that_cannot_be_built_is_refused(name: str) -> None:
    with pytest.raises(TrueupError, match=name):
        DelayLine(1, 1, **{"dt_s": DT, "max_delay_s": DT, name: -DT})


def test_wrong_shapes_are_refused() -> None:
    line = make(3, 2)
    with pytest.raises(TrueupError, match=r"shape \(3, 2\) \(nsim, njoint\), found \(2, 3\)"):
        line.step(np.zeros((2, 3)), 4)
    with pytest.raises(TrueupError, match="at least one physics step"):
        line.step(np.zeros((3, 2)), 0)
    with pytest.raises(TrueupError, match="does not fit"):
        line.set_delay(np.zeros((2, 2)))
    with pytest.raises(TrueupError, match="does not fit"):
        line.reset(np.array([3]), 0.0)
    with pytest.raises(TrueupError, match="restores 'history' of shape"):
        line.restore(make(2, 2).state())
    with pytest.raises(TrueupError, match="found nothing"):
        line.restore({})


@pytest.mark.medium
def test_step_of_512_rows_takes_less_than_half_a_millisecond() -> None:
    rng = np.random.default_rng(7)
    line = make(512, 12, rng.uniform(0, 10 * DT, (512, 12)))
    command = rng.normal(size=(512, 12))
    seconds = []
    for _ in range(300):
        start = time.perf_counter()
        line.step(command, 4)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5e-3
