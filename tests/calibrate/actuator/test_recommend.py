"""The rule in words: simplest within one standard error of the best."""

import msgspec

from trueup.calibrate.actuator.recommend import StepCheck, in_question, overfits, recommend
from trueup.calibrate.actuator.rungs import choose, params_of, rung_named
from trueup.calibrate.actuator.score import PositionError, Scores


def made(held: float, se: float = 0.1, train: float | None = None, **more) -> Scores:
    def error(value: float) -> PositionError:
        return PositionError(seconds=None, mean=1e-3 * value, se=1e-3 * se, joints=[1e-3 * value])

    return Scores(held=[error(held)], train=error(held if train is None else train), **more)


def test_the_simplest_within_one_standard_error_of_the_best_is_chosen():
    found = recommend({"pd": made(9.0), "pace": made(2.05), "M2": made(2.0), "uan": made(2.01)})
    assert (found.rung, found.best) == ("pace", "M2")
    assert "within one standard error of the best: 2.05 mrad" in found.reason
    assert "ideal PD, leaves 9.00" in found.reason


def test_a_rung_that_is_clearly_better_wins_however_complex():
    found = recommend({"pd": made(9.0), "pace": made(2.0), "uan": made(1.0)})
    assert found.rung == found.best == "uan"
    assert "no simpler rung is within one standard error" in found.reason


def test_a_net_that_mends_no_more_than_the_physics_step_is_not_recommended():
    scores = {"pd": made(9.0), "pace": made(0.69), "M2": made(0.69), "uan": made(0.65, se=0.01)}
    assert recommend(scores).rung == "uan"
    assert in_question(scores) == "pace"

    def finer(value):
        return StepCheck(rung="pace", physics_hz=400.0, whole=made(value).whole)

    found = recommend(scores, finer=finer(0.53))
    assert (found.rung, found.best) == ("pace", "uan")
    assert "at 400 Hz + friction M1 (pace) alone leaves 0.53" in found.reason
    kept = recommend(scores, finer=finer(0.67))
    assert kept.rung == "uan"
    assert "half the physics step would not do: at 400 Hz + friction M1 (pace) leaves 0.67" in kept.reason


def test_half_the_step_is_tried_only_where_a_learned_rung_is_about_to_win():
    assert in_question({"pd": made(9.0), "pace": made(2.0), "M2": made(1.0)}) is None
    assert in_question({"pd": made(9.0), "pace": made(2.05), "uan": made(2.0)}) is None
    assert in_question({"pd": made(9.0), "pace": made(2.0), "uan": made(1.0)}, unbounded=["uan"]) is None
    assert in_question({"uan": made(1.0)}) is None


def test_what_runs_away_or_blows_up_is_not_chosen():
    scores = {"pd": made(9.0), "net": made(0.5), "uan": made(0.4, diverged=True)}
    found = recommend(scores, unbounded=["net"])
    assert found.rung == "pd"
    assert "run away in long rollouts: actuator net, 6 inputs" in found.reason


def test_a_rung_that_learned_its_data_by_heart_is_named_with_the_simpler_one_that_beats_it():
    scores = {"pace": made(2.0, train=1.8), "M2": made(2.0, train=1.7), "net": made(3.0, train=0.5)}
    assert overfits(scores) == {"net": "pace"}
    assert "overfitted: actuator net, 6 inputs (worse than + friction M1 (pace)" in recommend(scores).reason


def test_nothing_bounded_is_said_so():
    assert "no rung stayed bounded" in recommend({"pd": made(1.0)}, unbounded=["pd"]).reason


def test_a_rung_exactly_one_standard_error_away_is_as_good_and_one_beyond_is_not():
    assert recommend({"pd": made(2.5, se=0.5), "pace": made(2.0, se=0.5)}).rung == "pd"
    assert recommend({"pd": made(2.51, se=0.5), "pace": made(2.0, se=0.5)}).rung == "pace"
    # the standard error that counts is that of the best
    assert recommend({"pd": made(2.5, se=9.0), "pace": made(2.0, se=0.1)}).rung == "pace"


def test_a_finer_step_changes_nothing_where_no_net_was_about_to_win():
    finer = StepCheck(rung="pace", physics_hz=400.0, whole=made(0.1).whole)
    found = recommend({"pd": made(9.0), "pace": made(3.0), "M2": made(1.0), "uan": made(1.5)}, finer=finer)
    assert found.rung == found.best == "M2"


def test_overfitting_is_told_on_new_motion_where_that_is_known():
    seen = made(1.0, train=0.5)
    new = {"motion": made(3.0).whole}
    assert overfits({"pace": made(2.0, train=1.8), "net": msgspec.structs.replace(seen, groups=new)}) == {"net": "pace"}
    assert overfits({"pace": made(2.0, train=1.8), "net": seen}) == {}
    # worse on unseen data and on its own: it is a bad model, not an overfitted one
    assert overfits({"pace": made(2.0, train=1.8), "net": made(3.0, train=1.9)}) == {}


def test_the_whole_log_error_is_the_last_horizon():
    short, whole = (PositionError(seconds=s, mean=m, se=0.0, joints=[m]) for s, m in ((0.1, 9.0), (None, 1.0)))
    scores = Scores(held=[short, whole], train=whole)
    assert scores.whole.mean == scores.motion.mean == 1.0


def test_rungs_named_twice_or_by_their_set_are_chosen_once():
    assert [rung.name for rung in choose("quick,pd,uan")] == ["pd", "delay", "pace", "motor", "M2", "fir", "net", "uan"]
    assert {rung.kind for rung in choose("parametric")} == {"ideal", "params"}
    assert params_of(rung_named("delay"), "pace") == "delay"
    assert params_of(rung_named("pace"), "servo") == "servo"
    assert params_of(rung_named("M3"), "servo") == "servo,friction:M3"
