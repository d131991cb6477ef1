"""`tu.train` as a user writes it."""

import trueup as tu


def test_train_is_a_package_and_a_verb(tmp_path):
    run = tu.train("pendulum-swingup", out=tmp_path / "run", steps=2048, nenv=32, seed=1)
    assert run.outcome.reason == "steps"
    assert run.metrics()[-1]["steps"] == run.outcome.steps
    assert run.assess(episodes=3).episodes == 3
    assert run.policy().spec.task == "pendulum-swingup"
    more = tu.train("pendulum-swingup", out=tmp_path / "run", steps=4096, resume=True)
    assert more.outcome.steps >= 4096
