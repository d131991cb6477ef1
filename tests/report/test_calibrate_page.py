"""The page of a calibration in a real browser without network: everything drawn, nothing missing, not too large."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_calibration import made_calibration
from opened import opened

from trueup.calibrate.calibrate import Fit
from trueup.calibrate.uncertainty.covariance import Posterior
from trueup.calibrate.uncertainty.scores import ScoredReplays
from trueup.data.log import Log
from trueup.report.calibration.summary import next_recording
from trueup.robot.load import load_robot
from trueup.world.replay.replay import Replay

ROBOT = load_robot("go2")
NAMES = ("armature", "damping", "friction", "encoder_bias", "delay")


def made_fit() -> Fit:
    """A fit of 49 parameters, some weak, with 15 s of replays."""
    result = made_calibration(ROBOT, NAMES, deviation={"friction": 0.4, "damping": 0.9})
    time = np.arange(3000) / 200
    measured = 0.3 * np.sin(np.outer(time, np.linspace(2, 9, 12)))
    rng = np.random.default_rng(0)

    def replayed(error: float) -> ScoredReplays:
        shown = (measured + error * np.cumsum(rng.standard_normal(measured.shape), axis=0))[None]
        one = Replay(
            start=np.zeros(1, np.intp),
            time=time,
            joint_names=ROBOT.spec.joint_names,
            joint_pos=shown,
            joint_vel=shown,
            measured_pos=measured[None],
            diverged=np.zeros(1, bool),
        )
        return ScoredReplays(score=result.fit_nominal, replays=(one,))

    log = Log(time=time, joint_names=ROBOT.spec.joint_names, signals={"joint_pos": measured})
    found = Posterior(covariance=np.array(result.covariance), correlation_time_s=np.full(24, 0.005))
    return Fit(
        robot=ROBOT,
        calibration=result,
        posterior=found,
        shown=(log,),
        nominal=replayed(1e-3),
        calibrated=replayed(1e-4),
    )


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_fit().report(tmp_path_factory.mktemp("fit") / "index.html")


@pytest.fixture(scope="module")
def tab(page_file: Path) -> Iterator[Any]:
    with opened(page_file) as page:
        yield page


@pytest.mark.medium
def test_everything_is_drawn_without_network_and_without_complaint(tab):
    assert len(tab.query_selector_all(".plot")) == 4  # traces, spectrum, intervals, correlations
    assert tab.complaints == []
    words = tab.evaluate("document.body.innerText")
    for part in ("What to record next", "Open-loop replay", "Spectrum of the error", "Correlations"):
        assert part in words
    assert "25 identified" in words
    assert "12 weak" in words
    assert "12 not visible" in words


@pytest.mark.medium
def test_every_joint_is_shown_measured_nominal_and_calibrated(tab):
    lines = tab.evaluate("document.querySelector('.plot').querySelectorAll('.trace path.js-line').length")
    assert lines == 3 * ROBOT.spec.njoint


@pytest.mark.medium
def test_labels_of_parameters_do_not_cover_each_other(tab):
    """Every parameter's name beside the intervals has its own place."""
    boxes = tab.evaluate("[...document.querySelectorAll('.plot')][2].querySelectorAll('.ytick text').length")
    assert boxes == len(made_fit().calibration.estimates)
    tops = tab.evaluate(
        "[...[...document.querySelectorAll('.plot')][2].querySelectorAll('.ytick text')]"
        ".map((text) => text.getBoundingClientRect().top).sort((a, b) => a - b)"
    )
    assert np.diff(tops).min() > 9


@pytest.mark.medium
def test_the_page_does_not_need_scrolling_sideways(tab):
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.medium
def test_the_page_is_moderate_in_size(page_file):
    assert page_file.stat().st_size < 8_000_000


def test_the_text_is_short_with_the_verdict_first_and_like_joints_together():
    fit = made_fit()
    lines = fit.table().splitlines()
    assert len(lines) < 35
    assert lines[0].startswith("The calibrated model predicts held-out data no better than the nominal one: 10.00")
    assert "Of 49 parameters 25 identified, 0 bounded, 12 weak, 12 not visible." in " ".join(lines[:3])
    rows = [line.split(",")[0] for line in lines if ", kg m^2" in line or ", N m" in line]
    assert rows[:3] == ["armature hip", "armature thigh", "armature calf"]
    assert len(rows) == 9


def test_the_page_begins_with_the_verdict_and_folds_the_long_tables(page_file):
    html = page_file.read_text()
    verdict = html.index("The calibrated model predicts held-out data")
    assert verdict < html.index("25 identified</span>") < html.index("<h2>")
    groups, all_rows = html.index("armature hip"), html.index("<summary>Every parameter</summary>")
    assert groups < all_rows < html.index("armature FL_hip_joint", all_rows)


def test_the_verbose_text_names_every_parameter_and_each_advice_once():
    fit = made_fit()
    text = fit.table(verbose=True)
    for name in {entry.parameter.name for entry in fit.calibration.estimates}:
        mine = [entry.parameter for entry in fit.calibration.estimates if entry.parameter.name == name]
        start = text.index(f"\n{name}, {mine[0].unit}")
        places = [text.index(one.label.removeprefix(name).strip(), start) for one in mine]
        assert places == sorted(places)
    assert text.count("record something that shows it") == 1
    assert next_recording(fit.calibration)[0][0].endswith("and 21 more")
