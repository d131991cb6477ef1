"""Logs as users bring them end in a result or in one line, never in a traceback."""

import sys
from pathlib import Path

import numpy as np
import pytest
from planted_logs import planted_log

from trueup.calibrate.calibrate import calibrate
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import load_robot

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from fuzz_logs import attempt, small
from spoiled import SPOILS, as_it_is, gain_steps, mixed_rates, torque_off, two_clocks

ROBOT = load_robot("pendulum")
TRUTH = {"armature": np.array([0.01]), "damping": np.array([0.1]), "delay": np.array([0.005])}
LOG = planted_log(ROBOT, TRUTH, seconds=8.0)


def short_ones(rng: np.random.Generator, log: Log) -> list[Log]:
    """A second each: none would be enough alone."""
    return [log.window(k, k + 200) for k in range(0, len(log), 200)]


@pytest.mark.medium
@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
def test_any_log_ends_in_a_result_or_in_one_line(spoil):
    seed = SPOILS.index(spoil)
    ended = attempt(ROBOT, spoil, np.random.default_rng(seed), LOG, check=seed % 2 == 0)
    assert ended.kind in ("result", "error"), ended.words


@pytest.mark.medium
@pytest.mark.parametrize("spoil", [gain_steps, torque_off, short_ones, two_clocks, mixed_rates])
def test_usable_logs_give_a_result(spoil):
    fit = calibrate(ROBOT, spoil(np.random.default_rng(3), LOG), small(ROBOT, check=False))
    assert np.isfinite(fit.calibration.values).all()


@pytest.mark.medium
def test_the_ladder_says_in_one_line_when_a_log_is_too_short():
    brief = LOG.window(0, 450)
    ended = attempt(ROBOT, as_it_is, np.random.default_rng(0), brief, ladder=True, check=False)
    assert ended.kind == "error"
    assert "held-out logs" in ended.words
    with pytest.raises(TrueupError, match="too short"):
        calibrate(ROBOT, [brief], small(ROBOT))
