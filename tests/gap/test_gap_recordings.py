"""Recordings that do not fit the robot or its policy are refused; those that disagree are told."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from made_deploys import standing_bundle

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.gap.causes.recordings import check_bundle, disagreement, in_order, on_one_clock, robot_of, share_of_each
from trueup.gap.causes.search import Tested as Result
from trueup.robot.load import load_robot


def _log(joints, rows=50, rate=50.0, **meta):
    position = np.zeros((rows, len(joints)))
    return Log(time=np.arange(rows) / rate, joint_names=tuple(joints), signals={"joint_pos": position}, meta=meta)


def _windows():
    held, recording = np.tile([False, True], 8), np.repeat([0, 1], 8)
    return SimpleNamespace(held=held, log=recording)


def _gain(first, second):
    after = np.repeat([first, second], 8)
    return Result(cause="gain", joints=(), size=1.2, unit="times", before=np.ones(16), after=after, matters=True)


def test_a_log_of_another_robot_is_refused_with_both_names():
    with pytest.raises(TrueupError, match=r"robot 'so101', has 6 joints .* robot 'go2' has 'FL_hip_joint'"):
        in_order(load_robot("go2"), [_log(load_robot("so101").spec.joint_names, robot="so101")])


def test_a_bundle_of_another_robot_is_refused(tmp_path):
    bundle = standing_bundle(tmp_path / "standing")
    check_bundle(bundle, load_robot("go2"))
    with pytest.raises(TrueupError, match="bundle is of robot 'go2', the log of 'so101'"):
        check_bundle(bundle, load_robot("so101"))


def test_the_robot_is_the_one_that_log_or_policy_names(tmp_path):
    assert robot_of(_log(["a"], robot="so101"), None) == "so101"
    assert robot_of(_log(["a"]), standing_bundle(tmp_path / "standing")) == "go2"
    with pytest.raises(TrueupError, match="name it with --robot"):
        robot_of(_log(["a"]), None)


def test_recordings_of_several_rates_meet_on_one_clock():
    both = on_one_clock([_log(["a"], rows=100, rate=100.0), _log(["a"], rows=50, rate=50.0)])
    assert len({round(float(np.median(np.diff(log.time))), 6) for log in both}) == 1


def test_what_a_change_explains_of_each_recording_is_told():
    windows, one = _windows(), _gain(0.4, 1.5)
    assert share_of_each(one, windows) == pytest.approx([0.6, -0.5])
    words = disagreement(one, windows, ("logs/sweep.mcap", "logs/steps.mcap"))
    assert "explains 60% of the mismatch of sweep.mcap and -50% of steps.mcap" in words
    assert "recording 2" in disagreement(one, windows, ())


def test_a_recording_in_which_a_change_does_nothing_is_not_counted():
    shares = share_of_each(replace(_gain(0.4, 1.0)), _windows())
    assert shares[0] == pytest.approx(0.6)
    assert np.isnan(shares[1])
