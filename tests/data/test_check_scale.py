"""Velocities that read a little high in every joint: no filter does that."""

from dataclasses import replace

import pytest
from make_logs import clean

from trueup.data.check.check import check_log

SEEDS = [seed for seed in range(4000, 4040) if len(clean(seed).log.joint_names) >= 6][:12]


@pytest.mark.parametrize("factor", [1.12, 1.25])
def test_velocities_a_little_too_large_are_told(factor):
    found = 0
    for seed in SEEDS:
        sample = clean(seed)
        signals = {**sample.log.signals, "joint_vel": sample.log["joint_vel"] * factor}
        found += "velocity_scale" in check_log(replace(sample.log, signals=signals), sample.reference).codes
    assert found >= 0.95 * len(SEEDS)


def test_clean_velocities_are_not_blamed():
    for seed in SEEDS:
        sample = clean(seed)
        assert "velocity_scale" not in check_log(sample.log, sample.reference).codes
