"""ADR: boundaries move out by success, in by failure, each by its own buffer."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.randomization.adr import Adr, AdrCfg
from trueup.world.randomization.randomize import Draw, Randomizer


def make(nsim=200, **cfg):
    sim = BatchSim(load_robot("pendulum"), SimCfg(nsim=nsim, threads=1))
    ranges = {"kp": Draw(operation="scale", low=0.5, high=1.5), "damping": Draw(operation="scale", low=0.5, high=3.0)}
    randomizer = Randomizer(sim, ranges)
    return sim, randomizer, Adr(randomizer, AdrCfg(buffer=5, step=0.1, **cfg), RowRandom(0, "adr", nsim))


def test_ranges_start_at_the_calibrated_point():
    sim, randomizer, adr = make()
    np.testing.assert_array_equal(adr.bounds, 1.0)
    rows = np.arange(sim.nsim)
    randomizer.reset(rows, adr.choose(rows))
    np.testing.assert_allclose(sim.params.get("kp"), sim.robot.spec.kp[0])


def test_rows_at_a_boundary_are_pinned_there_and_half_of_all_are():
    sim, randomizer, adr = make(1000)
    adr.bounds[:] = [[0.7, 1.2], [0.8, 2.0]]
    rows = np.arange(1000)
    entry, side = adr.choose(rows)
    randomizer.reset(rows, (entry, side))
    assert abs((entry >= 0).mean() - 0.5) < 0.06
    scale = sim.params.get("kp")[:, 0] / sim.robot.spec.kp[0]
    np.testing.assert_allclose(scale[(entry == 0) & (side == 0)], 0.7)
    np.testing.assert_allclose(scale[(entry == 0) & (side == 1)], 1.2)
    inside = scale[entry != 0]
    assert inside.min() > 0.7
    assert inside.max() < 1.2
    assert len(np.unique(inside)) > 100


def test_a_boundary_that_cannot_move_is_not_tried():
    sim = BatchSim(load_robot("pendulum"), SimCfg(nsim=600, threads=1))
    ranges = {
        "kp": Draw(operation="scale", low=0.5, high=1.5),
        "delay": Draw(operation="set", low=0.0, high=0.02, each=False),
        "armature": Draw(operation="scale", low=0.5, high=1.0),
    }
    adr = Adr(Randomizer(sim, ranges), AdrCfg(boundary_share=1.0), RowRandom(0, "adr", 600))
    entry, side = adr.choose(np.arange(600))
    tried, times = np.unique(2 * entry + side, return_counts=True)
    np.testing.assert_array_equal(tried, [0, 1, 3, 4])  # kp both ways, delay up, armature down
    assert times.min() > 100


@pytest.mark.parametrize(("performance", "expected"), [(0.9, 1.1), (0.6, 1.0), (0.1, 1.0)])
def test_a_full_buffer_moves_its_boundary_by_one_step(performance, expected):
    _, _, adr = make()
    adr._entry[:], adr._side[:] = 0, 1
    adr.report(np.arange(4), np.full(4, performance))
    np.testing.assert_array_equal(adr.bounds, 1.0)
    adr.report(np.array([4]), np.array([performance]))
    np.testing.assert_allclose(adr.bounds, [[1.0, expected], [1.0, 1.0]])


def test_failure_moves_a_boundary_back_but_not_past_the_start():
    _, _, adr = make()
    adr.bounds[0] = 0.7, 1.0
    adr._entry[:], adr._side[:] = 0, 0
    for want in (0.8, 0.9, 1.0, 1.0):
        adr.report(np.arange(5), np.zeros(5))
        np.testing.assert_allclose(adr.bounds[0, 0], want)


def test_boundaries_stay_within_the_full_range_and_width_is_reported():
    _, _, adr = make()
    narrow = adr.metrics()["adr/log_width"]
    for entry in (0, 1):
        for side in (0, 1):
            adr._entry[:], adr._side[:] = entry, side
            for _ in range(30):
                adr.report(np.arange(5), np.ones(5))
    np.testing.assert_allclose(adr.bounds, adr.limits)
    assert narrow < adr.metrics()["adr/log_width"] == 0.0
    assert adr.metrics()["adr/kp/high"] == 1.5


def test_wrong_thresholds_are_refused():
    with pytest.raises(TrueupError, match="low < high"):
        AdrCfg(low=0.9, high=0.5)
