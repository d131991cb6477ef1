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


def test_a_task_of_ones_own_is_trained_as_an_object_and_known_to_this_process(tmp_path, monkeypatch):
    from dataclasses import replace

    from trueup.core.errors import TrueupError
    from trueup.rl.settings import SacCfg
    from trueup.tasks import load
    from trueup.train.folder import RunFolder

    learner = SacCfg(hidden=(8,), batch=16, updates=1, warmup=32, nenv=8)
    task = replace(load.load_task("pendulum-swingup"), name="swing", learner=learner)
    run = tu.train(task, out=tmp_path / "run", steps=64)
    assert RunFolder(run.path).config().task == "object:swing"
    assert RunFolder(run.path).config().learner == learner
    assert run.assess(episodes=2).episodes == 2
    other = replace(task, score="swing_up", symmetric=True)
    assert load.name_object(other) == "object:swing#2"
    assert load.name_object(load.load_task("pendulum-swingup")) == "pendulum-swingup"
    monkeypatch.setattr(load, "_objects", {})  # another process
    with pytest.raises(TrueupError, match="object of another process"):
        run.assess(episodes=2)
    assert tu.train(task, out=run.path, steps=128, resume=True).outcome.steps == 128


def test_a_function_is_recorded_by_its_file(tmp_path):
    from trueup.core.own_code import own_function
    from trueup.tasks.zoo.pendulum_swingup import pendulum_swingup
    from trueup.train.config import task_reference

    file = tmp_path / "mine.py"
    file.write_text(
        "from trueup.tasks.zoo.pendulum_swingup import pendulum_swingup\ndef swing():\n    return pendulum_swingup()\n"
    )
    assert task_reference(own_function(f"{file}:swing")) == f"{file}:swing"
    assert task_reference(pendulum_swingup) == task_reference(lambda: pendulum_swingup()) == "pendulum-swingup"


def test_a_robot_object_is_recorded_by_name_or_folder_and_a_changed_one_refused(tmp_path):
    import shutil
    from dataclasses import replace

    import msgspec

    from trueup.core.errors import TrueupError
    from trueup.train.config import robot_reference

    robot = tu.load_robot("pendulum")
    assert robot_reference(robot) == "pendulum"
    assert robot_reference(tu.load_robot("pendulum:load_mass=1.0")) == "pendulum:load_mass=1.0"
    shutil.copytree(robot.model_path.parent, tmp_path / "mine")
    assert robot_reference(tu.load_robot(tmp_path / "mine")) == str(tmp_path / "mine")
    joints = tuple(msgspec.structs.replace(joint, velocity=1.0) for joint in robot.spec.joints)
    changed = msgspec.structs.replace(robot.spec, joints=joints)
    with pytest.raises(TrueupError, match="changed in Python"):
        robot_reference(replace(robot, spec=changed))
