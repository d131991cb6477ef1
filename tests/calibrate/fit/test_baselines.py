"""Baselines through the same door: each finds its way down on a small problem."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from planted_logs import draw_truth, planted_log

from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import BASELINES, CalibrateCfg, FitCfg
from trueup.calibrate.fit.fit import Fitter
from trueup.calibrate.fit.problem import make_problem
from trueup.calibrate.fit.search import FitState, objective
from trueup.core.checkpoint import Checkpoint
from trueup.robot.load import load_robot

ROBOT = load_robot("go2")
ONLY = {name: draw_truth(ROBOT, 4)[name] for name in ("delay",)}
CFG = CalibrateCfg(params="delay", physics_hz=200.0, check=False)


@pytest.fixture(scope="module")
def problem():
    log = planted_log(ROBOT, ONLY, seconds=6.0)
    return make_problem(ROBOT, [log], replace(CFG, fit=FitCfg(method="random")))


@pytest.mark.medium
@pytest.mark.parametrize("method", BASELINES)
def test_every_baseline_finds_the_delay_by_name(method):
    log = planted_log(ROBOT, ONLY, seconds=6.0)
    fit = calibrate(ROBOT, [log], replace(CFG, fit=FitCfg(method=method, evaluations=160)))
    assert abs(fit.calibration.find("delay").value - ONLY["delay"][0]) < 1e-3


def test_the_objective_is_a_mean_square_in_radians(problem):
    whole = problem.whole
    entry = whole.parameters[0]
    costs = objective(whole, 1.0, 0.0)(np.array([[entry.to_x(ONLY["delay"][0])], [entry.to_x(0.03)]]))
    assert costs[0] < (6e-4) ** 2
    assert costs[1] > 10 * costs[0]


@pytest.mark.medium
def test_a_random_search_that_is_resumed_ends_as_if_it_had_never_stopped(problem):
    whole = Fitter(problem, FitCfg(method="random", evaluations=64)).run()
    first = Fitter(problem, FitCfg(method="random", evaluations=32))
    first.run()
    state = FitState(x=first.state.x, best=first.state.best, best_cost=first.state.best_cost, batches=1)
    stopped = Checkpoint(arrays={}, facts=msgspec.to_builtins(state))
    rest = Fitter(problem, FitCfg(method="random", evaluations=64)).run(resumed=stopped)
    np.testing.assert_array_equal(rest.x, whole.x)


@pytest.mark.medium
def test_a_budget_ends_a_search_with_the_best_so_far(problem):
    solution = Fitter(problem, FitCfg(method="pace", budget_s=0.05)).run()
    assert not solution.converged
    assert not solution.interrupted
    assert np.isfinite(solution.cost)
