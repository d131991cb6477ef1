"""`tu.train` as a user writes it."""

import pytest
from made_calibration import made_calibration

import trueup as tu


def test_train_is_a_package_and_a_verb(tmp_path):
    run = tu.train("pendulum-swingup", out=tmp_path / "run", steps=2048, nenv=32, seed=1)
    assert run.outcome.reason == "steps"
    assert run.metrics()[-1]["steps"] == run.outcome.steps
    assert run.assess(episodes=3).episodes == 3
    assert run.policy().spec.task == "pendulum-swingup"
    more = tu.train("pendulum-swingup", out=tmp_path / "run", steps=4096, resume=True)
    assert more.outcome.steps >= 4096


@pytest.mark.medium
def test_a_fit_is_drawn_from_and_kept_with_the_run(tmp_path):
    from trueup.calibrate.calibrate import Fit

    robot = tu.load_robot("pendulum")
    made = made_calibration(robot, ["damping", "friction"])
    fit = object.__new__(Fit)  # only its calibration counts here
    object.__setattr__(fit, "calibration", made)
    tu.train("pendulum-swingup", out=tmp_path / "run", steps=1024, nenv=16, params=fit)
    kept = tmp_path / "run" / "params" / "params.json"
    assert kept.exists()
    assert str(kept) in (tmp_path / "run" / "config.json").read_text()
