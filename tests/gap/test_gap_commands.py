"""Commands beyond the joints' range are replayed as the robot heard them; logs too short to judge are refused."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.gap.causes.structure import on_clock
from trueup.gap.config import GapCfg
from trueup.gap.gap import _as_heard, _windows, gap
from trueup.gap.mismatch import Model
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

RATE, SECONDS, CALF = 200.0, 3.0, 2


def _log(*, cut_off: bool, beyond: float = 0.5) -> Log:
    """A go2 that hangs; one calf is led beyond its end by a soft servo, which the robot lets through or not."""
    robot = load_robot("go2")
    low, high = robot.spec.position_low, robot.spec.position_high
    sim = BatchSim(robot, SimCfg(threads=1, control_hz=RATE, physics_hz=RATE, model=ModelCfg(base="fixed")))
    time = np.arange(round(SECONDS * RATE)) / RATE
    target = np.tile(robot.spec.default_pose, (len(time), 1))
    target[:, CALF] = high[CALF] + beyond * np.sin(2.0 * np.pi * 2.0 * time)
    sim.reset()
    out = sim.rollout((np.clip(target, low, high) if cut_off else target)[None], record=("qpos", "qvel"))
    pos = np.concatenate([robot.spec.default_pose[None], out["qpos"][0][:-1, sim.index.qpos]])
    vel = np.concatenate([np.zeros((1, 12)), out["qvel"][0][:-1, sim.index.dof]])
    signals = {"joint_pos": pos, "joint_vel": vel, "target_pos": target}
    return Log(time=time, joint_names=robot.spec.joint_names, signals=signals)


def _heard(log: Log) -> tuple[Log, list[str]]:
    model = Model(robot=load_robot("go2"), params=None, walking=False)
    found, notes = _as_heard(model, [log], GapCfg(max_windows=8))
    return found[0], notes


def test_what_a_robot_cuts_off_is_replayed_cut_off_and_said() -> None:
    log = _log(cut_off=True)
    found, notes = _heard(log)
    assert found["target_pos"][:, CALF].max() == pytest.approx(load_robot("go2").spec.position_high[CALF])
    assert "beyond the joints' range" in notes[0]


def test_what_a_robot_lets_through_stays() -> None:
    log = _log(cut_off=False)
    found, notes = _heard(log)
    assert np.array_equal(found["target_pos"], log["target_pos"])
    assert notes == []


def test_commands_within_the_range_need_no_second_look() -> None:
    log = _log(cut_off=False)
    inside = np.clip(
        log["target_pos"], *(getattr(load_robot("go2").spec, f"position_{end}") for end in ("low", "high"))
    )
    kept = Log(time=log.time, joint_names=log.joint_names, signals={**log.signals, "target_pos": inside})
    assert _heard(kept)[0] is kept


@pytest.mark.parametrize(("rows", "words"), [(40, "too short for windows"), (120, r"0.59 s of log hold 2 windows")])
def test_a_log_too_short_to_judge_says_how_long_it_must_be(rows: int, words: str) -> None:
    with pytest.raises(TrueupError, match=words):
        gap("go2", _log(cut_off=False).window(0, rows))


@pytest.mark.parametrize("scale", [0.6, 1.5])
def test_a_log_on_another_clock_is_cut_at_the_same_rows(scale: float) -> None:
    log, model = _log(cut_off=False).window(0, 330), Model(robot=load_robot("go2"), params=None, walking=False)
    one, other = (_windows(model, [each], GapCfg(), RATE) for each in (log, on_clock(log, scale)))
    assert np.array_equal(one.measured, other.measured)
