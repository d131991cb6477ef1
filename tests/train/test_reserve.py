"""A run with --minutes keeps time for its film, assessment and page."""

import numpy as np
import pytest

from trueup.cli import main
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.train.config import Budget, RunCfg
from trueup.train.folder import RunFolder
from trueup.train.reserve import FILM_S, SHORTEST_FILM_S, Reserve, measured_reserve
from trueup.train.train import run_env, train

NET = NetCfg(actor=(16, 16), critic=(16, 16))
CFG = RunCfg(
    task="pendulum-swingup", seed=3, nenv=16, threads=1, learner=PpoCfg(steps=8, minibatches=2, epochs=2, net=NET)
)
KEPT = Reserve(assess_s=8.0, film_s=6.0, setup_s=2.0, page_s=4.0)


def test_a_film_is_as_long_as_the_time_left_allows():
    assert KEPT.film_length(np.inf) == FILM_S
    after = 1.25 * (8.0 + 4.0)
    assert KEPT.film_length(after + 6.0) == FILM_S
    assert KEPT.film_length(after + 2.0 + 2.5) == pytest.approx(2.5)  # a second of film takes a second
    assert KEPT.film_length(0.0) == SHORTEST_FILM_S


def test_the_reserve_is_what_its_parts_take_with_a_margin():
    assert KEPT.total_s == pytest.approx(1.25 * 18.0)
    assert Reserve().total_s == 0.0


@pytest.mark.medium
def test_costs_are_measured_by_doing_a_share_of_them():
    found = measured_reserve(lambda nenv: run_env(CFG, nenv, stagger=False), 20, films=True, assesses=True)
    assert found.film_s > found.setup_s > 0.0
    assert found.assess_s > 0.0
    assert found.page_s >= 4.0
    without = measured_reserve(lambda nenv: run_env(CFG, nenv, stagger=False), 20, films=False, assesses=False)
    assert without.film_s == without.assess_s == 0.0


@pytest.mark.medium
def test_training_ends_early_enough_for_what_follows(tmp_path, monkeypatch):
    monkeypatch.setattr("trueup.train.train.measured_reserve", lambda *_, **__: Reserve(page_s=1000.0))
    outcome = train(CFG, tmp_path, Budget(minutes=(2.0 + 1250.0) / 60.0, assessed=True))
    assert outcome.reason == "minutes"
    assert outcome.iteration > 0  # one in any case: without a policy there is nothing to show
    assert outcome.elapsed_s < 300.0


def test_a_run_without_time_for_anything_still_has_a_policy(tmp_path):
    outcome = train(CFG, tmp_path, Budget(minutes=1e-6))
    assert (outcome.reason, outcome.iteration) == ("minutes", 1)


@pytest.mark.medium
def test_a_run_ends_with_a_film_of_the_policy_that_is_kept(tmp_path):
    with pytest.raises(SystemExit) as end:
        main(["train", CFG.task, "--out", str(tmp_path / "run"), "--nenv", "16", "--threads", "1", "--steps", "512"])
    assert end.value.code == 0
    run = RunFolder(tmp_path / "run")
    steps = int(run.newest().facts["steps"])
    assert [film.name for film in run.films.glob("*.mp4")] == [f"{steps:010d}.mp4"]
    assert "<video" in (run.path / "index.html").read_text()
