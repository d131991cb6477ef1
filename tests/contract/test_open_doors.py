"""What is missing is one new file: every file of docs/extend.md, outside the package, through the public verbs."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import trueup as tu
from trueup.cli import main
from trueup.core.errors import TrueupError
from trueup.models.friction import LAWS
from trueup.models.friction_law import FrictionLaw
from trueup.rl.settings import with_reference
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.train.folder import RunFolder
from trueup.train.train import assess_run
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import read_calibration
from trueup.world.parameters.table import GEAR_FRICTION, PARAMETERS, add_friction_law

ROOT = Path(__file__).resolve().parents[2]
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", (ROOT / "docs/extend.md").read_text(), re.DOTALL))
SMALL = {"nenv": 8, "threads": 1, "film_minutes": 0.0}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files, in which one works."""
    for name, code in FILES.items():
        (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laws that a test adds are forgotten after it."""
    for table in (LAWS, PARAMETERS, GEAR_FRICTION):
        for name in set(table):
            monkeypatch.setitem(table, name, table[name])  # type: ignore[arg-type, index]
    yield
    for table in (LAWS, PARAMETERS, GEAR_FRICTION):
        for name in ("churning", "friction_churn"):
            table.pop(name, None)  # type: ignore[arg-type]


def metrics(run: Path) -> dict[str, float]:
    last: dict[str, float] = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    return last


def test_the_page_has_a_file_for_every_door():
    assert set(FILES) == {"roll.py", "thrift.py", "hold.py", "churning.py", "greased_sim.py", "search.py"}


# --- a task with an object ---
def test_a_task_with_an_object_is_one_file(place):
    run = tu.train("roll.py:roll", out=place / "run", steps=400, **SMALL)
    assert (run.path / "policy").exists() or RunFolder(run.path).newest_policy() is not None
    assert assess_run(RunFolder(run.path), episodes=2).episodes == 2
    env = TaskEnv(load_task("roll.py:roll"), EnvCfg(nenv=2, threads=1, randomize=False))
    at = env.sim.model.body("ball").dofadr[0]
    env.sim.qvel[1, at] = 0.25  # half of what counts fully; the other ball lies still
    env.frame.forget()
    np.testing.assert_allclose(env.task.rewards["rolls"].function(env.frame), [0.0, 0.5], atol=1e-3)


# --- a signal ---
def test_a_signal_is_one_file_and_reaches_critic_reward_and_metrics(place):
    run = tu.train("thrift.py:thrifty", out=place / "run", steps=400, **SMALL)
    assert metrics(run.path)["motor_power"] > 0.0
    env = TaskEnv(load_task("thrift.py:thrifty"), EnvCfg(nenv=4, threads=1))
    env.step(np.ones((4, 1), np.float32))
    power = np.abs(env.frame.joint_torque * env.frame.joint_vel).sum(axis=1)
    np.testing.assert_allclose(env.frame.motor_power, power, rtol=1e-5)
    np.testing.assert_allclose(env.obs.critic[:, env.nactor], 0.2 * power, rtol=1e-4)


# --- a goal ---
def test_a_goal_is_one_file_and_its_error_is_the_runs(place):
    run = tu.train("hold.py:hold", out=place / "run", steps=400, **SMALL)
    assert metrics(run.path)["angle_error"] > 0.0
    assessed = assess_run(RunFolder(run.path), episodes=2)
    assert assessed.error is not None
    env = TaskEnv(load_task("hold.py:hold"), EnvCfg(nenv=64, threads=1))
    asked = env.goal.values[:, 0]
    assert -0.5 <= asked.min() < -0.3 < 0.3 < asked.max() <= 0.5
    assert env.goal.sliders[0].name == "angle, rad"


# --- a friction law ---
def swings(churn: float) -> tu.Log:
    """Commands and positions of a pendulum whose joint has this drag; a small seeded encoder noise."""
    sim = BatchSim(tu.load_robot("pendulum"), SimCfg(friction="churning", control_hz=200.0, physics_hz=1000.0))
    sim.params.set("friction_churn", churn)
    sim.reset()
    time = np.arange(0.0, 8.0, sim.control_dt)
    target = 1.5 * np.sin(2 * np.pi * (0.3 + 0.15 * time) * time)[:, None]
    pos, vel = np.empty_like(target), np.empty_like(target)
    for k, command in enumerate(target):
        pos[k], vel[k] = sim.joint_pos[0], sim.joint_vel[0]
        sim.step(command[None])
    pos = pos + np.random.default_rng(0).normal(0.0, 1e-4, pos.shape)
    signals = {"joint_pos": pos, "joint_vel": vel, "target_pos": target}
    return tu.Log(time=time, joint_names=sim.robot.spec.joint_names, signals=signals)


def test_a_friction_law_is_one_file_in_simulation_calibration_and_training(place, laws, monkeypatch):
    add_friction_law("churning.py:churning")
    log = tu.write_log_file(swings(0.02), place / "swings.mcap")
    fit = ["calibrate", str(log), "--robot", "pendulum", "--params", "friction:churning.py:churning", "--out", "fit"]
    with pytest.raises(SystemExit) as end:
        main([*fit, "--method", "local", "--no-page"])
    assert end.value.code == 0
    found = read_calibration(place / "fit").find("friction_churn")
    assert found.interval[0] < 0.02 < found.interval[1]
    assert found.value == pytest.approx(0.02, rel=0.1)
    run = tu.train("pendulum-swingup", params=place / "fit", out=place / "run", steps=200, **SMALL)
    assert RunFolder(run.path).newest().facts["policy"]["kind"] == "plain"


def test_what_was_fitted_with_a_law_needs_it(place, laws):
    with pytest.raises(TrueupError, match="no friction model 'churning'"):
        BatchSim(tu.load_robot("pendulum"), SimCfg(friction="churning"))
    made = runpy.run_path(str(place / "greased_sim.py"))
    sim = made["sim"]
    sim.params.set("gravity", [0.0, 0.0, 0.0])
    for name in ("kp", "kd", "damping", "friction"):
        sim.params.set(name, 0.0)
    sim.reset(qvel=np.full((2, 1), 4.0))
    for _ in range(50):
        sim.step(np.zeros((2, 1)))
    assert sim.joint_vel[0, 0] == pytest.approx(4.0, rel=1e-3)  # without drag it coasts
    assert 0.0 < sim.joint_vel[1, 0] < 3.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "M2"}, "a name and at least one coefficient of its own"),
        ({"coefficients": {}}, "a name and at least one coefficient of its own"),
        ({"coefficients": {"chrun": None}}, "Churning has no coefficient 'chrun'"),
    ],
)
def test_a_law_that_a_fit_could_not_tell_from_others_is_refused(place, laws, change, message):
    law: FrictionLaw = runpy.run_path(str(place / "churning.py"))["churning"]()
    with pytest.raises(TrueupError, match=message):
        add_friction_law(law._replace(**change))


def test_a_coefficient_of_another_law_is_refused(laws):
    with pytest.raises(TrueupError, match="coefficient 'kl' is one of 'M.' already"):
        add_friction_law(LAWS["M3"]._replace(name="mine"))


# --- an algorithm ---
def test_an_algorithm_is_one_file_that_resumes_exports_and_is_assessed(place):
    options = {"task": "pendulum-swingup", "learner": "search.py:SearchCfg", "option": ("rate=0.2", "steps=20")}
    whole = tu.train(out=place / "whole", steps=4 * 8 * 20, **options, **SMALL)
    tu.train(out=place / "parts", steps=2 * 8 * 20, **options, **SMALL)
    parts = tu.train(out=place / "parts", resume=True, steps=4 * 8 * 20)
    one, two = (RunFolder(run.path).newest().arrays for run in (whole, parts))
    assert one.keys() == two.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name], err_msg=name)
    assert np.abs(one["weight"]).max() > 0.0
    recorded = json.loads((place / "whole" / "config.json").read_text())["learner"]
    assert recorded["algorithm"].endswith("search.py:SearchCfg")
    assert (recorded["rate"], recorded["noise"]) == (0.2, 0.3)
    assert assess_run(RunFolder(whole.path), episodes=2).episodes == 2
    assert tu.export(whole.path, out=place / "bundle")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("search.py:RandomSearch", "must be a dataclass derived from"),
        ("search.py:SerchCfg", "did you mean 'SearchCfg'"),
    ],
)
def test_settings_that_are_none_are_refused(place, name, message):
    with pytest.raises(TrueupError, match=message):
        tu.train("pendulum-swingup", learner=name, out=place / "run", steps=1)


def test_settings_given_as_an_object_are_recorded_by_file_and_class(place):
    made = runpy.run_path(str(place / "search.py"))["SearchCfg"]
    with pytest.raises(TrueupError, match="define it at the top level of a file"):
        with_reference(made())  # its module is gone: nothing could read the run again
    from trueup.core.own_code import own_function

    cfg = own_function(str(place / "search.py:SearchCfg"))(rate=0.5)
    assert with_reference(cfg).algorithm == f"{place / 'search.py'}:SearchCfg"
    assert with_reference(cfg).rate == 0.5
