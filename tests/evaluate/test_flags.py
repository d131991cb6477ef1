"""Red flags follow from numbers, and name the scenario in which it is worst."""

from __future__ import annotations

import pytest

from trueup.evaluate.flags import red_flags
from trueup.evaluate.score import PolicyScore, ScenarioResult
from trueup.tasks.evaluation.statistics import Spread, wilson

CALM = {
    "clearance": 0.08,
    "jerkiness": 300.0,
    "uneven": 0.1,
    "thermal": 0.4,
    "at_limit": 0.0,
    "slip": 0.05,
    "joint_margin": 0.1,
    "outside": 0.002,
    "lean": 0.0,
}


def result(name: str = "forward", falls: int = 0, flags: dict[str, float] | None = None, **numbers: float):
    metrics = {key: Spread(mean=v, median=v, low=v, high=v) for key, v in (CALM | numbers).items()}
    return ScenarioResult(
        name=name, title=name, key="", rate=wilson(100 - falls, 100), least=0.8, passed=True,
        reasons={"fell": falls} if falls else {}, metrics=metrics, flags=flags or {}, failed=("",) * 100,
        error=(0.1,) * 100, worst=0,
    )  # fmt: skip


def flags_of(*results: ScenarioResult):
    score = PolicyScore(
        policy="p", bundle_hash="", task="t", robot="r", engine="mujoco", seed=0, trials=100, suite="s", suite_hash="",
        error_label="", results=results,
    )  # fmt: skip
    return {flag.name: flag for flag in red_flags(score)}


def test_a_calm_gait_raises_none():
    assert flags_of(result()) == {}


@pytest.mark.parametrize(
    ("name", "numbers", "words"),
    [
        ("low feet", {"clearance": 0.012}, "0.012 m"),
        ("jerky", {"jerkiness": 1500.0}, "1500 rad/s"),
        ("asymmetric gait", {"uneven": 0.6}, "60%"),
        ("hot motors", {"thermal": 1.7}, "1.7 times"),
        ("torque at its limit", {"at_limit": 0.12}, "12%"),
        ("slipping", {"slip": 0.5}, "0.50 m/s"),
        ("near the joint stops", {"joint_margin": -0.02}, "-2.0%"),
        ("unknown observations", {"outside": 0.2}, "20.0%"),
    ],
)
def test_each_number_raises_its_flag_alone(name, numbers, words):
    found = flags_of(result(**numbers))
    assert list(found) == [name]
    assert words in found[name].seen
    assert found[name].cause
    assert found[name].fix


def test_shuffling_is_the_tasks_own_flag_by_its_share_of_time():
    assert list(flags_of(result(flags={"shuffling": 0.4}))) == ["shuffling"]
    assert flags_of(result(flags={"shuffling": 0.1})) == {}


def test_falls_to_one_side_are_told_from_falls_to_both():
    # 20 falls of 100 trials: 19 left and 1 right is a mean lean of 0.18; 11 and 9 one of 0.02
    assert "95%" in flags_of(result(falls=20, lean=0.18))["one-sided falls"].seen
    assert flags_of(result(falls=20, lean=0.02)) == {}
    assert flags_of(result(falls=3, lean=0.03)) == {}


def test_the_worst_scenario_is_named_and_the_others_are_counted():
    found = flags_of(result("a", slip=0.4), result("b", slip=0.9), result("c", slip=0.5), result("d"))
    assert "0.90 m/s while they touch the ground in 'b' and in 2 other scenarios" in found["slipping"].seen
