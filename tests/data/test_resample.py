"""Rates of logs: parts of one log have one rate, clocks that hardly differ count as one."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import at_rate, common_rate, rate_of


def made(rate: float, seconds: float = 5.0) -> Log:
    time = np.arange(round(seconds * rate)) / rate
    signals = {"joint_pos": np.sin(time)[:, None], "target_pos": np.cos(time)[:, None]}
    return Log(time=time, joint_names=("a",), signals=signals)


def test_parts_of_one_log_have_exactly_one_rate():
    log = made(200.0)
    parts = [log.window(a, a + 137) for a in range(0, 700, 97)]
    assert {rate_of(part) for part in parts} == {200.0}
    assert rate_of(made(199.98)) == rate_of(made(200.02)) == 200.0
    assert rate_of(made(333.3)) == pytest.approx(333.3, rel=1e-3)


def test_the_most_common_rate_is_that_of_most_seconds_and_the_first_on_a_tie():
    assert common_rate([made(50.0, 20.0), made(200.0, 5.0), made(200.1, 5.0)]) == 50.0
    assert common_rate([made(50.0, 8.0), made(200.0, 5.0), made(200.3, 5.0)]) == 200.0
    assert common_rate([made(100.0), made(200.0)]) == 100.0


def test_a_clock_off_by_a_thousandth_is_not_resampled():
    log = made(199.8)
    assert at_rate(log, 200.0) is log
    assert len(at_rate(made(100.0), 200.0)) == 999


def test_a_clock_that_does_not_run_is_refused():
    with pytest.raises(TrueupError, match="clock that runs"):
        rate_of(made(200.0).window(0, 1))
    still = made(200.0)
    with pytest.raises(TrueupError, match="clock that runs"):
        rate_of(Log(time=0.0 * still.time, joint_names=("a",), signals=still.signals))
