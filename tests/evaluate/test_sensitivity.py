"""Sensitivity: a planted weakness is found where it was planted, and margins are what levels say."""

from __future__ import annotations

import numpy as np
import pytest
from made_suites import made_bundle, spec_of, suite_file

from trueup.evaluate.run import evaluate
from trueup.evaluate.scenarios.scenario import Probe
from trueup.evaluate.scenarios.suite import read_suite
from trueup.evaluate.sensitivity import Asker, _margin, _part_way
from trueup.evaluate.trials.world import TrialCfg, make_world
from trueup.tasks.evaluation.statistics import wilson
from trueup.tasks.load import load_task

SPEC, TASK = spec_of(), load_task("go2-velocity")


@pytest.mark.medium
def test_the_parameter_that_breaks_a_policy_is_found(tmp_path):
    score = evaluate(
        made_bundle(SPEC), scenarios=suite_file(tmp_path), only=("stand",), trials=4, threads=1, sensitivity=True
    )
    found = score.sensitivity
    assert found is not None
    assert found.base == "stand"
    assert found.nominal.share == 1.0
    torque, delay = found.probes
    assert (torque.margin, torque.breaks) == (0.8, 0.05)
    assert [rate.successes for rate in torque.rates] == [4, 4, 0, 0]
    assert (delay.margin, delay.breaks) == (0.02, None)
    (pair,) = found.pairs
    assert pair.titles == ("torque", "delay")
    assert pair.levels == pytest.approx((1.0 - 0.2 * 2 / 3, 0.02 * 2 / 3))
    assert pair.rate.share == 1.0


def test_cases_are_rows_of_one_batch_and_do_not_disturb_each_other(tmp_path):
    suite = read_suite(suite_file(tmp_path))
    asker = Asker(made_bundle(SPEC), TASK, suite.scenarios[0], suite.probes, TrialCfg(threads=1))
    rates = asker.ask([{}, {"torque": 0.04}, {"delay": 0.02}, {"torque": 0.04, "delay": 0.02}], 3)
    assert [rate.successes for rate in rates] == [3, 0, 3, 0]


def test_numbers_that_are_not_given_leave_a_row_as_it_is(tmp_path):
    suite = read_suite(suite_file(tmp_path))
    probe = suite.probes[0]
    numbers = np.array([[0.5], [np.nan]])
    cfg = TrialCfg(trials=2, threads=1, moved=(("torque_limit", probe.change(0.5), numbers),))
    world = make_world(TASK, suite.scenarios[0], SPEC, cfg)
    np.testing.assert_allclose(world.torque_limit / world.robot.torque_limit, np.tile([[0.5], [1.0]], (1, 12)))


def probe(**levels: tuple[float, ...]) -> Probe:
    return Probe(title="p", param="contact_friction" if "set" in levels else "kp", **levels)


def test_a_margin_ends_at_the_first_level_that_fails_even_if_a_later_one_does_not():
    rates = [wilson(successes, 10) for successes in (10, 9, 8, 10)]
    found = _margin(probe(scale=(0.9, 0.8, 0.7, 0.6)), rates)
    assert (found.margin, found.breaks) == (0.8, 0.7)
    assert _margin(probe(scale=(0.9,)), [wilson(10, 10)]).breaks is None
    none = _margin(probe(scale=(0.9,)), [wilson(1, 10)])
    assert (none.margin, none.breaks) == (None, 0.9)


def test_pairs_are_tried_a_part_of_the_way_from_where_a_parameter_does_nothing():
    falling = probe(set=(0.5, 0.4, 0.3))
    good = _margin(falling, [wilson(10, 10), wilson(10, 10), wilson(0, 10)])
    assert _part_way(falling, good) == pytest.approx(0.6 - 0.2 * 2 / 3)
    scaled = probe(scale=(0.9, 0.5))
    bad = _margin(scaled, [wilson(0, 10), wilson(0, 10)])
    assert _part_way(scaled, bad) == pytest.approx(1.0 - 0.1 / 3)
