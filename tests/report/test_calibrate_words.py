"""Verdicts, excluded nominal values and checks in words, as the terminal and the page show them."""

import msgspec
import pytest
from made_calibration import made_calibration

from trueup.report.calibration.summary import excluded_shown, next_recording, predictive_text, word_shown
from trueup.robot.load import load_robot
from trueup.world.fitted.calibration import Estimate, Predictive

ROBOT = load_robot("pendulum")
RESULT = made_calibration(ROBOT, ("damping", "friction"), deviation={"friction": 0.4})


def estimate(**changes: object) -> Estimate:
    return msgspec.structs.replace(RESULT.estimates[0], **changes)


def test_a_bound_says_on_which_side():
    entry = RESULT.estimates[0].parameter
    above = estimate(verdict="bounded", value=0.1, interval=(entry.low, 0.35))
    assert word_shown(above) == "at most 0.35"
    below = estimate(verdict="bounded", value=3.0, interval=(1.5, entry.high))
    assert word_shown(below) == "at least 1.5"
    assert word_shown(estimate(verdict="weak")) == "weak"


@pytest.mark.parametrize(("rise", "shown"), [(0.083, "+8.3 %"), (13.0, "x 14"), (None, "")])
def test_an_excluded_nominal_value_shows_the_rise_of_the_cost(rise: float | None, shown: str):
    assert excluded_shown(estimate(nominal_excluded=True, nominal_cost=rise)) == shown
    assert excluded_shown(estimate(nominal_excluded=False, nominal_cost=rise)) == ""


def test_advice_is_given_once_with_the_parameters_it_is_for():
    assert next_recording(RESULT) == [("friction joint", "record something that shows it")]
    assert next_recording(made_calibration(ROBOT, ("damping",))) == []


def test_the_predictive_check_says_when_the_error_is_not_covered():
    check = Predictive(
        draws=40, median_ratio=1.18, q95_ratio=1.64, estimate_error=1.77e-3, spread=(1.38e-3, 2.73e-3), covered=True
    )
    assert "1.77 mrad, is within" in predictive_text(check)
    assert "NOT within" in predictive_text(msgspec.structs.replace(check, covered=False))
