"""Whole evaluations: scores on disk, worst trials kept, going on after a stop, and what is refused before it begins."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from made_suites import made_bundle, spec_of, suite_file

import trueup as tu
from trueup.core.errors import TrueupError
from trueup.data.files import read_log
from trueup.evaluate.exam import shipped_for
from trueup.evaluate.run import evaluate
from trueup.evaluate.score import compare, read_score
from trueup.tasks.load import load_task

SPEC = spec_of()


def scored(folder, **options):
    given = {"scenarios": suite_file(folder), "trials": 6, "threads": 1, "films": False, "out": folder / "out"}
    return evaluate(made_bundle(SPEC), **(given | options))


def test_standing_passes_and_no_torque_fails(tmp_path):
    score = scored(tmp_path)
    assert score["stand"].passed
    assert score["stand"].rate.successes == 6
    assert not score["limp"].passed
    assert score["limp"].reasons == {"fell": 6}
    assert not score.passed
    assert score.worst.name == "limp"
    assert score["limp"].mean("seconds") < 1.0
    assert score["stand"].metrics["power"].mean > 0.0


def test_a_score_on_disk_is_the_score(tmp_path):
    score = scored(tmp_path)
    assert read_score(tmp_path / "out") == score
    assert tu.read_score(tmp_path / "out" / "score.json").worst.name == "limp"


def test_the_worst_trial_is_a_log_of_what_happened(tmp_path):
    score = scored(tmp_path)
    log = read_log(score.log("limp"))
    assert len(log) == 51
    assert log.meta["scenario"] == "limp"
    assert log.meta["trial"] == score["limp"].worst
    assert log["base_pos"][-1, 2] < log["base_pos"][0, 2] - 0.05  # it sank
    np.testing.assert_allclose(log["target_pos"][0], tu.load_robot("go2").spec.default_pose, atol=1e-6)
    assert {"joint_pos", "joint_vel", "joint_torque", "imu_gyro", "base_quat"} <= set(log.signals)
    with pytest.raises(TrueupError, match="no film"):
        score.film("limp")


@pytest.mark.medium
def test_the_worst_trial_is_filmed(tmp_path):
    score = scored(tmp_path, films=True, only=("limp",))
    assert score.film("limp").read_bytes()[4:8] == b"ftyp"


def test_what_is_done_is_not_done_again(tmp_path):
    first = scored(tmp_path)
    assert scored(tmp_path) == first  # times of work included
    assert scored(tmp_path, seed=1)["stand"].key != first["stand"].key


def test_a_damaged_result_is_made_again(tmp_path):
    first = scored(tmp_path)
    (tmp_path / "out" / "scenarios" / "stand.json").write_text("{")
    again = scored(tmp_path)
    assert again["stand"].rate == first["stand"].rate
    assert again["stand"].took_s != first["stand"].took_s
    assert again["limp"] == first["limp"]


def test_a_stop_keeps_what_is_done_and_the_next_run_goes_on(tmp_path):
    stop = threading.Event()
    seen = []

    def progress(done: float) -> None:
        seen.append(done)
        if done > 0.6:
            stop.set()

    part = scored(tmp_path, progress=progress, stop=stop)
    assert not part.complete
    assert not part.passed
    assert [one.name for one in part.results] == ["stand"]
    whole = scored(tmp_path, progress=seen.append)
    assert whole.complete
    assert whole["stand"] == part["stand"]
    assert seen[-1] == pytest.approx(1.0)


def test_nothing_is_written_without_a_folder(tmp_path):
    score = scored(tmp_path, out=None)
    assert [path.name for path in tmp_path.iterdir()] == ["suite.toml"]
    assert "stand" in score.table()
    assert "fell 6" in score.table()


def test_the_same_trials_are_compared_pair_by_pair(tmp_path):
    good = scored(tmp_path, out=None, trials=8)
    bad = evaluate(made_bundle(SPEC, size=8.0), scenarios=suite_file(tmp_path), trials=8, threads=1)
    duels = {one.name: one for one in compare(good, bad)}
    assert duels["stand"].outcome == "won"
    assert duels["stand"].p == pytest.approx(2 / 2**8)
    assert duels["limp"].outcome == "drawn"
    assert {one.name: one.outcome for one in compare(bad, good)}["stand"] == "lost"
    with pytest.raises(TrueupError, match="cannot be compared"):
        compare(good, replace(bad, seed=7))


def test_observations_outside_the_training_range_are_counted(tmp_path):
    bundle, columns = made_bundle(SPEC), SPEC.observation.nactor
    bundle.passport.bounds = np.full(columns, -100.0), np.full(columns, 100.0)
    inside = evaluate(bundle, scenarios=suite_file(tmp_path), only=("stand",), trials=2, threads=1)
    assert inside["stand"].mean("outside") == 0.0
    bundle.passport.bounds = np.full(columns, 5.0), np.full(columns, 6.0)
    outside = evaluate(bundle, scenarios=suite_file(tmp_path), only=("stand",), trials=2, threads=1)
    assert outside["stand"].mean("outside") == 1.0
    assert "unknown observations" in [flag.name for flag in outside.red_flags]


def test_bad_requests_are_told_before_anything_runs(tmp_path):
    with pytest.raises(TrueupError, match="trials"):
        scored(tmp_path, trials=0)
    with pytest.raises(TrueupError, match="did you mean 'stand'"):
        scored(tmp_path, only=("stnd",))
    with pytest.raises(TrueupError, match=r"suite\.toml|no such file"):
        scored(tmp_path, scenarios=tmp_path / "none.toml")
    with pytest.raises(TrueupError):
        evaluate(tmp_path / "nothing.bundle")
    assert not (tmp_path / "out").exists()


def test_the_suite_follows_from_the_task():
    assert shipped_for(load_task("go2-velocity")) == "locomotion"
    assert shipped_for(load_task("z1-reach")) == "arm"
    with pytest.raises(TrueupError, match="--scenarios"):
        shipped_for(load_task("pendulum-swingup"))


@pytest.mark.parametrize("text", ["{}", "no json", '{"schema": 1}', "[1]"])
def test_what_is_no_score_is_refused(tmp_path, text):
    (tmp_path / "score.json").write_text(text)
    with pytest.raises(TrueupError, match=r"score\.json"):
        read_score(tmp_path)


@pytest.mark.medium
@pytest.mark.parametrize(("task", "label"), [("z1-reach", "settled distance, m"), ("so101-push", "object distance, m")])
def test_an_arm_goes_through_its_suite(task, label):
    score = evaluate(made_bundle(spec_of(task)), only=("reach", "payload"), trials=3, threads=1, seed=3)
    assert score.suite == "Arm"
    assert score.error_label == label
    for one in score.results:
        assert one.reasons["error"] >= 2  # it does not move, and few goals are where it is
        assert one.metrics["error"].mean > 0.05
        assert "slip" not in one.metrics
