"""Built-in tasks are learned: short trainings, assessed without exploration."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.folder import RunFolder
from trueup.train.play.assess import Assessment
from trueup.train.train import assess_run, train


def learned(task: str, steps: int, folder: Path, nenv: int = 512) -> Assessment:
    train(RunCfg(task=task, threads=1, nenv=nenv, learner=default_learner(task)), folder, Budget(steps=steps))
    return assess_run(RunFolder(folder), episodes=50)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_arm_learns_to_push_a_cube(tmp_path) -> None:
    """About two minutes of one core; an arm that leaves the cube alone errs by 0.10 m."""
    result = learned("so101-push", 600_000, tmp_path, nenv=256)
    assert result.error is not None
    assert result.error < 0.06
    assert result.metrics["success"] > 0.3
    assert result.falls == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_quadruped_learns_to_follow_a_clip(tmp_path) -> None:
    """About two minutes of one core; a robot that stands in its default pose errs by 0.14 rad and 0.4 m/s."""
    result = learned("go2-clip", 500_000, tmp_path)
    assert result.error is not None
    assert result.error < 0.12
    assert result.metrics["speed_error"] < 0.2
    assert result.falls <= 2
