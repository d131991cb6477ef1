"""The timetable of a ladder: estimates that learn, and a limit that keeps the most telling rungs."""

import pytest

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.costs import Costs, Timetable, measured_costs
from trueup.calibrate.actuator.rungs import RUNGS, choose, rung_named
from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg

QUICK = choose("quick")


def walked(table: Timetable) -> list[str]:
    """Names of the rungs that run when each takes as long as was estimated."""
    ran = []
    for rung in table.rungs:
        if table.fits(rung):
            ran.append(rung.name)
            table.finish(rung)
            table.began -= table.costs.of(rung)
    return ran


def test_a_probe_is_timed_on_this_machine():
    costs = measured_costs(load_robot("pendulum"), SimCfg(physics_hz=200.0, model=ModelCfg(base="fixed")))
    assert costs.probe_s > 0.0
    assert costs.all_of(QUICK) < costs.all_of(RUNGS)


def test_a_rung_that_took_twice_as_long_doubles_the_estimates_of_its_kind_only():
    costs = Costs(probe_s=0.1)
    pace, m4, uan = (rung_named(name) for name in ("pace", "M4", "uan"))
    before = costs.of(m4), costs.of(uan)
    costs.took(pace, 2.0 * costs.of(pace))
    assert costs.of(m4) == pytest.approx(2.0 * before[0])
    assert costs.of(uan) == before[1]


def test_all_quick_rungs_run_where_there_is_time():
    table = Timetable(rungs=QUICK, costs=Costs(probe_s=1e-4), limit_s=300.0)
    assert walked(table) == [rung.name for rung in QUICK]
    assert "belong to the thorough form" in table.words(5.0)
    assert "would not have fitted" not in table.words(5.0)


def test_where_time_is_short_the_most_telling_rungs_run_and_the_rest_is_named():
    costs = Costs(probe_s=1.0)
    parametric = costs.all_of([rung_named(name) for name in ("pd", "delay", "pace", "motor")])
    table = Timetable(rungs=QUICK, costs=costs, limit_s=parametric + 5.0)
    assert walked(table) == ["pd", "delay", "pace", "motor"]
    words = table.words(5.0)
    assert "uan (about 8.0 min)" in words
    assert "M3, M4, M5, M6, net_long belong to the thorough form" in words
    assert words.endswith("--thorough compares all")


def test_what_the_ladder_stands_on_runs_even_without_time():
    table = Timetable(rungs=QUICK, costs=Costs(probe_s=1.0), limit_s=1.0)
    assert walked(table) == ["pd", "delay", "pace"]
    assert not table.has_time_for_step_check
    assert "half the physics step" in table.words(5.0)


def test_named_rungs_have_no_limit_and_leave_nothing_out():
    cfg = LadderCfg(rungs="pd,uan")
    table = Timetable(rungs=choose(cfg.chosen), costs=Costs(probe_s=100.0), limit_s=cfg.limit_s)
    assert "uan" in walked(table)
    assert table.words(5.0) == ""


def test_progress_tells_the_time_left():
    table = Timetable(rungs=QUICK, costs=Costs(probe_s=0.01))
    table.began -= table.estimate_s  # as long as all of it was estimated to take, and nothing is done
    assert table.progress(0.0) == pytest.approx(0.5, abs=0.01)
    for rung in QUICK:
        table.finish(rung)
    assert 0.85 < table.progress(0.0) < 1.0  # the check of the physics step is still to come


def test_thorough_is_all_and_does_not_go_with_a_choice():
    assert choose(LadderCfg(thorough=True).chosen) == RUNGS
    assert LadderCfg(thorough=True).limit_s is None
    with pytest.raises(TrueupError, match="give one of the two"):
        LadderCfg(thorough=True, rungs="pace")
    with pytest.raises(TrueupError, match="above 0"):
        LadderCfg(minutes=0.0)
