"""Monitors: what they warn of, how long they wait, and that ordinary running is none of their business."""

import numpy as np
import pytest
from made_bundles import OBSERVATION, make_passport
from made_deploys import changed, wide_ranges

from trueup.core.errors import TrueupError
from trueup.deploy.control.controller import ControlStep
from trueup.deploy.control.monitors import NAMES, MonitorCfg, Monitors

NOBS = OBSERVATION.nactor
RANGE, DISTANCE, ACTION, DEADLINE = (1 << k for k in range(len(NAMES)))


def step(raw=(0.0, 0.0, 0.0), **columns):
    """A control step whose observation is zero but for columns by number (c5=...)."""
    seen = np.zeros(NOBS, np.float32)
    for name, value in columns.items():
        seen[int(name[1:])] = value
    zero = np.zeros(3)
    return ControlStep(seen, np.array(raw, np.float32), zero, zero, zero, np.zeros(3, np.float32))


def monitors(reach=1.0, **cfg):
    return Monitors(make_passport(ranges=wide_ranges(NOBS, reach)), MonitorCfg(**cfg))


def test_ordinary_observations_raise_nothing_for_an_hour():
    watch, rng = monitors(reach=5.0), np.random.default_rng(0)
    for _ in range(2000):
        seen = rng.normal(0.0, 1.0, NOBS).clip(-5, 5).astype(np.float32)
        found = watch.watch(step()._replace(observation=seen))
        assert (found.flags, found.reason) == (0, "")
        assert 0.5 < found.distance < 1.6


def test_a_term_outside_its_range_is_named_with_both_values_and_trips_after_half_a_second():
    watch = monitors()
    found = [watch.watch(step(c5=-1.5)) for _ in range(25)]  # gravity z of the oldest frame
    assert found[0].flags == RANGE
    assert found[0].outside == ("gravity z -1 is -1.5, in training it was -1.2 to 1.2",)
    assert [one.reason for one in found[:24]] == [""] * 24
    assert "gravity z" in found[24].reason  # 25 x 20 ms
    assert "0.5 s" in found[24].reason


def test_the_margin_is_a_tenth_of_the_span():
    watch = monitors()
    assert watch.watch(step(c5=1.19)).outside == ()
    assert watch.watch(step(c5=1.21)).outside != ()


def test_what_comes_and_goes_trips_when_it_is_there_more_often_than_not():
    watch = monitors()
    seldom = [watch.watch(step(c5=1.5 if k % 3 == 0 else 0.0)).reason for k in range(300)]
    often = [watch.watch(step(c5=0.0 if k % 3 == 0 else 1.5)).reason for k in range(300)]
    assert not any(seldom)
    assert any(often)


def test_the_command_is_the_operators_and_no_ones_range():
    found = monitors().watch(step(c6=50.0, c24=50.0))  # forward, of both frames
    assert (found.flags, found.outside, found.distance) == (0, (), 0.0)


def test_distance_is_the_root_mean_square_of_z_without_the_command():
    columns = NOBS - 6
    found = monitors(reach=100.0).watch(step(c0=10.1))
    assert found.distance == pytest.approx(10.1 / 1.01 / np.sqrt(columns))


def test_far_from_training_trips_after_its_patience_and_names_the_farthest():
    watch = monitors(reach=1000.0)
    found = [watch.watch(step(c13=60.0)) for _ in range(15)]  # joint_vel of the second joint, 60 / sqrt(30) > 3
    assert found[0].flags == DISTANCE
    assert not any(one.reason for one in found[:14])
    assert "joint_vel knee -1" in found[14].reason
    assert "standard deviations" in found[14].reason


def test_an_action_beyond_three_times_training_trips_at_once_and_is_numbered():
    found = monitors().watch(step(raw=(0.0, -3.5, 0.0)))
    assert found.flags == ACTION
    assert "output 1" in found.reason
    assert "-3.5" in found.reason
    assert monitors().watch(step(raw=(0.0, -2.9, 0.0))).reason == ""


def test_deadlines_must_be_missed_in_a_row():
    watch = monitors()
    found = [watch.watch(step(), missed=k % 5 != 0).reason for k in range(50)]
    assert not any(found)
    watch.watch(step())
    found = [watch.watch(step(), missed=True) for _ in range(5)]
    assert found[3].reason == ""
    assert found[3].flags == DEADLINE
    assert "5 control steps in a row missed their deadline of 20 ms" in found[4].reason


def test_a_hanging_robot_is_warned_of_but_not_stopped_for_what_it_sees():
    watch = monitors(trip=False)
    found = [watch.watch(step(c5=9.0)) for _ in range(100)]
    assert all(one.flags & RANGE and not one.reason for one in found)
    assert watch.watch(step(raw=(99.0, 0.0, 0.0))).reason != ""  # what it says may stop it all the same


def test_a_bundle_that_never_ran_has_nothing_to_compare_with():
    watch = Monitors(make_passport(ranges=None, ranges_missing="never ran"))
    found = watch.watch(step(raw=(1e6, 0.0, 0.0), c0=1e6))
    assert (found.flags, found.outside, found.reason) == (0, (), "")
    assert np.isnan(found.distance)


def test_a_scaled_action_term_is_compared_in_the_actions_own_size():
    terms = (*OBSERVATION.terms[:-1], changed(OBSERVATION.terms[-1], scale=0.1))
    policy = changed(make_passport().policy, observation=changed(OBSERVATION, terms=terms))
    watch = Monitors(make_passport(policy=policy, ranges=wide_ranges(NOBS, 1.0)))
    assert watch.watch(step(raw=(29.0, 0.0, 0.0))).reason == ""  # 1.0 / 0.1 x 3 = 30
    assert watch.watch(step(raw=(31.0, 0.0, 0.0))).reason != ""


@pytest.mark.parametrize("cfg", [{"range_s": 0.0}, {"distance": -1.0}, {"misses": 0}, {"range_margin": -0.1}])
def test_limits_without_meaning_are_refused(cfg):
    with pytest.raises(TrueupError, match="positive"):
        MonitorCfg(**cfg)
