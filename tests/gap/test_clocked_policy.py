"""A policy with a clock is not computed again from a log: no log says when the clock began."""

from types import SimpleNamespace

import msgspec
import numpy as np
from made_bundles import ACTION, OBSERVATION, make_passport

from trueup.data.log import Log
from trueup.gap.causes.policy_replay import not_replayable
from trueup.policy.cycle import CycleSpec
from trueup.policy.observation import Term

CYCLE = CycleSpec(rows=((0.0,) * 3, (0.1,) * 3))


def bundle(**changed):
    policy = msgspec.structs.replace(make_passport().policy, **changed)
    return SimpleNamespace(passport=SimpleNamespace(policy=policy), net=lambda rows: SimpleNamespace(has_memory=False))


def log():
    signals = {"joint_pos": np.zeros((2, 3)), "joint_vel": np.zeros((2, 3)), "imu_gyro": np.zeros((2, 3))}
    signals["imu_quat"] = np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    return Log(time=np.array([0.0, 0.02]), joint_names=OBSERVATION.joint_names, signals=signals)


def test_a_clock_or_a_cycle_is_why_a_policy_is_not_computed_again():
    clock = msgspec.structs.replace(OBSERVATION, terms=(*OBSERVATION.terms, Term("clock")), clock_step=0.025)
    assert "clock" in not_replayable(bundle(observation=clock), log())
    assert "clock" in not_replayable(bundle(action=msgspec.structs.replace(ACTION, cycle=CYCLE)), log())
    assert "clock" not in not_replayable(bundle(), log())
