"""The page of an actuator ladder in a real browser without network: everything drawn, nothing missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from made_calibration import made_calibration
from opened import opened
from planted_logs import planted_log

from trueup.calibrate.actuator.folder import LadderFile, RungResult
from trueup.calibrate.actuator.ladder import Ladder
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.recommend import Recommendation
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import PositionError, Scores
from trueup.calibrate.actuator.trials import LongRun, Tracked
from trueup.data.log import Log
from trueup.report.calibration.actuator_plots import _worst_joint, gentle, lively
from trueup.report.calibration.actuators import ladder_page
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg

ROBOT = load_robot("go2")


def result(name: str, held: float, train: float, **more: Any) -> RungResult:
    def error(value: float, seconds: float | None) -> PositionError:
        return PositionError(seconds=seconds, mean=value, se=0.05 * value, joints=[value] * 12)

    steps = [error(held * part, s) for part, s in ((0.01, 0.005), (0.3, 0.1), (0.9, 1.0), (1.0, None))]
    return RungResult(
        **{"key": "", "rung": name, "status": "done", "count": 3, "fit_s": 2.5}
        | {
            "scores": Scores(held=steps, train=error(train, None), torque=0.1),
            "long": [LongRun(seconds=300.0, drift=1e-3, reach=0.3, reach_robot=0.3, bounded=name != "net")],
            "closed_loop": Tracked(difference=held, model=0.05, twin=0.05),
        }
        | more
    )


def made_ladder() -> Ladder:
    pace = made_calibration(ROBOT, ("armature", "damping", "friction", "encoder_bias", "delay"))
    rungs = [
        result("pd", 0.02, 0.02),
        result("pace", 0.002, 0.002),
        result("M3", 0.003, 0.0015, status="not excited", reason="none of the 12 numbers is visible"),
        result("net", 0.004, 0.001),
        RungResult(key="", rung="uan", status="not supported", reason="stands on nothing"),
    ]
    chosen = Recommendation(rung="pace", best="pace", reason="pace has the lowest error on unseen data")
    log = planted_log(ROBOT, {}, seconds=8.0)
    return Ladder(
        robot=ROBOT,
        file=LadderFile(
            robot="go2",
            split="held out: one log",
            common="pace",
            recommendation=chosen,
            rungs=rungs,
            notes=["a <note>"],
            provenance={"trueup": "0"},
        ),
        actuators={
            name: Actuator(rung=rung_named(name), params=None if name == "pd" else pace)
            for name in ("pd", "pace", "M3", "net")
        },
        held=(log,),
        sim=SimCfg(physics_hz=200.0, model=ModelCfg(base="fixed")),
    )


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    file = ladder_page(made_ladder()).write(tmp_path_factory.mktemp("ladder") / "index.html")
    assert file.stat().st_size < 6_000_000
    with opened(file) as page:
        yield page


@pytest.mark.medium
def test_everything_is_drawn_without_network_and_without_complaint(tab):
    assert len(tab.query_selector_all(".plot")) == 5  # ladder, horizons, misses, traces, loops
    assert tab.complaints == []
    words = tab.evaluate("document.body.innerText")
    for part in ("The ladder", "Error against horizon", "Unseen motion", "Hysteresis loops", "Long rollouts"):
        assert part in words
    for part in ("use + friction M1 (pace)", "recommended", "not excited", "not supported", "runs away"):
        assert part in words


@pytest.mark.medium
def test_every_rung_that_was_scored_has_its_bar_and_its_line(tab):
    bars, lines = (
        tab.evaluate(f"document.querySelectorAll('.plot')[{k}].querySelectorAll('{what}').length")
        for k, what in ((0, ".bars .point"), (1, ".trace path.js-line"))
    )
    assert bars == lines == 4


@pytest.mark.medium
def test_the_page_does_not_need_scrolling_sideways(tab):
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_text_has_every_rung_the_reasons_and_the_recommendation():
    text = made_ladder().table()
    for word in ("ideal PD", "unsupervised actuator net", "stands on nothing", "use pace: pace has the lowest"):
        assert word in text
    assert "20.00" in text  # mrad of ideal PD


def test_traces_are_of_lively_seconds_and_loops_of_gentle_ones():
    time = np.arange(0.0, 60.0, 0.01)
    speed = np.select([time < 20, time < 40], [0.0, 1.0], 5.0)
    target = np.sin(speed * time)[:, None]
    log = Log(time=time, joint_names=("a",), signals={"target_pos": target, "joint_pos": target})
    assert lively([log]).time[0] >= 39.0
    shown = gentle([log])
    assert 19.0 < shown.time[0] < 35.0
    assert len(shown) == 600


def test_a_log_at_rest_is_not_shown_where_others_move():
    time = np.arange(4000) / 100.0

    def log_of(command):
        target = np.repeat(command[:, None], 2, axis=1)
        signals = {"joint_pos": target, "target_pos": target}
        return Log(joint_names=("a", "b"), time=time, signals=signals)

    still, moving = log_of(0.0 * time), log_of(np.sin(time))
    for shown in (lively([still, moving]), gentle([still, moving])):
        assert np.ptp(shown["target_pos"]) > 0.5


def test_loops_are_of_a_joint_that_is_asked_to_move():
    time = np.arange(600) / 100.0
    target = np.stack([np.sin(time), 0.0 * time], axis=1)
    log = Log(
        time=time, joint_names=("a", "b"), signals={"target_pos": target, "joint_pos": target + np.array([0.01, 0.5])}
    )
    assert _worst_joint(log, {"measured": log["joint_pos"], "ideal PD": target}) == 0
