"""Distances of distributions on numbers whose distance is known."""

import numpy as np
import pytest

from trueup.data.log import Log
from trueup.gap.causes.distances import compare


def _log(shift=0.0, scale=1.0, seed=0, **more):
    values = shift + scale * np.random.default_rng(seed).standard_normal((4000, 2))
    signals = {"joint_pos": values, **{name: np.full((4000, 2), v) for name, v in more.items()}}
    return Log(time=np.arange(4000) / 200.0, joint_names=("a", "b"), signals=signals)


def test_alike_is_near_zero_and_a_shift_counts_in_standard_deviations():
    assert compare(_log(), [_log(seed=1)])["joint_pos"] < 0.06
    assert compare(_log(shift=1.0, scale=0.5), [_log(scale=0.5, seed=1)])["joint_pos"] == pytest.approx(2.0, abs=0.1)


def test_only_signals_that_both_have_are_compared():
    assert set(compare(_log(joint_vel=1.0), [_log()])) == {"joint_pos"}
    assert set(compare(_log(joint_vel=np.nan), [_log(joint_vel=1.0)])) == {"joint_pos"}
