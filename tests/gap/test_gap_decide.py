"""The decision, on numbers made by hand: what explains most, what is as good, what is too little."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.gap.causes.search import Tested as Result
from trueup.gap.decide import best_of_each, draws, least, rank, rank_alone, suspects

HELD = np.arange(16) // 2 % 2 == 1


def _result(cause, left, matters=True, numbers=1, spread=0.0):
    rng = np.random.default_rng(0)
    after = np.full(16, left) + spread * rng.uniform(-1.0, 1.0, 16)
    return Result(
        cause=cause, joints=(), size=1.0, unit="", before=np.ones(16), after=after, matters=matters, numbers=numbers
    )


def test_the_cause_that_explains_most_comes_first():
    found = rank([_result("gain", 0.4), _result("delay", 0.1)], {}, HELD, 0)
    assert [one.tested.cause for one in found] == ["delay", "gain"]
    assert found[0].explained == pytest.approx(0.9)
    assert found[0].confidence == 1.0
    assert not found[1].tied


def test_what_explains_as_much_is_told_and_the_simpler_comes_first():
    found = rank([_result("gain", 0.1, numbers=4), _result("weak motors", 0.1)], {}, HELD, 0)
    assert [one.tested.cause for one in found] == ["weak motors", "gain"]
    assert found[1].tied


def test_too_little_is_nothing_wrong():
    assert suspects([_result("gain", 0.97)], HELD, 0) == []
    assert suspects([_result("gain", 0.2, matters=False)], HELD, 0) == []


def test_what_chance_explains_as_well_is_no_cause():
    one = _result("heat", 0.7)
    assert rank([one], {"heat": 2.4}, HELD, 0) == []
    assert len(rank([one], {"heat": 0.8}, HELD, 0)) == 1


def test_neighbouring_windows_are_drawn_together():
    one = _result("gain", 0.0)
    after = np.where(np.arange(16) == 2, 8.0, 0.0)  # one bad window among eight held out, beside a perfect one
    drawn = draws([Result(**{**vars(one), "after": after})], HELD, 0)
    assert set(np.round(drawn[:, 0], 6)) <= {1.0 - k for k in range(5)}


def test_of_several_hypotheses_of_one_cause_the_better_on_the_estimating_half_counts():
    better, worse = _result("damping", 0.2), _result("damping", 0.5)
    assert best_of_each([worse, better], HELD) == [better]


def test_a_cause_is_judged_on_the_windows_in_which_it_changes_anything():
    """Heat that comes late explains most of the end of a log, and nothing of a sixth of it."""
    late = np.where(np.arange(48) < 30, 1.0, 0.3)
    held = np.arange(48) // 2 % 2 == 1
    one = replace(_result("heat", 1.0), before=np.ones(48), after=late)
    assert one.acts.sum() == 18
    assert least(one, held, 0) == pytest.approx(0.7)
    assert float(np.quantile(draws([one], held, 0)[:, 0], 0.05)) < 0.2
    assert suspects([one], held, 0) == [one]


def test_a_cause_that_acts_in_a_few_windows_is_not_judged():
    after = np.where(np.arange(48) < 42, 1.0, 0.3)
    one = replace(_result("heat", 1.0), before=np.ones(48), after=after)
    assert suspects([one], np.arange(48) // 2 % 2 == 1, 0) == []


def test_a_cause_alone_has_the_interval_of_what_it_explains():
    one = rank_alone(_result("normaliser", 0.01), HELD, 0)
    assert one.interval == pytest.approx((0.99, 0.99))
    assert one.confidence == 1.0


def test_a_number_that_mends_one_recording_and_spoils_another_is_no_cause():
    recording = np.repeat([0, 1], 24)
    held = np.tile(np.arange(24) // 2 % 2 == 1, 2)
    ones = np.ones(48)
    one = replace(_result("gain", 1.0), before=ones, after=np.where(recording == 0, 0.2, 1.1))
    assert suspects([one], held, 0) == [one]  # taken for one recording
    assert suspects([one], held, 0, recording) == []
    both = replace(one, after=np.where(recording == 0, 0.2, 0.7))
    found = rank([both], {}, held, 0, recording)
    assert found[0].explained == pytest.approx(0.55)
    assert found[0].interval == pytest.approx((0.3, 0.8))  # all draws of the one recording, or of the other
    assert least(both, held, 0, recording) == pytest.approx(0.3)


def test_a_cause_that_acts_in_one_recording_alone_is_not_held_against_it():
    recording = np.repeat([0, 1], 24)
    held = np.tile(np.arange(24) // 2 % 2 == 1, 2)
    late = replace(_result("heat", 1.0), before=np.ones(48), after=np.where(recording == 0, 1.0, 0.4))
    assert least(late, held, 0, recording) == pytest.approx(0.6)
