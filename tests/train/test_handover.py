"""What a calibration hands on to training, and training on a robot of one's own."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from made_calibration import made_calibration

import trueup as tu
from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.tasks.load import load_task
from trueup.train.config import RunCfg
from trueup.train.play.play import open_run
from trueup.train.train import run_env
from trueup.world.fitted.calibration import write_calibration

VELOCITY = 77.0


def kept(folder: Path, robot: str, names: tuple[str, ...], **more) -> str:
    return str(write_calibration(made_calibration(load_robot(robot), names, **more), folder))


def test_a_fit_of_which_nothing_is_visible_is_handed_on_whole(tmp_path: Path) -> None:
    names = ("armature", "damping", "friction", "encoder_bias", "delay")
    params = kept(tmp_path, "go2", names, deviation=dict.fromkeys(names, 0.7))
    env = run_env(RunCfg(task="go2-velocity", params=params), 64, threads=1)
    found = [entry for entry in env.variation.origins if entry.source == "prior width"]
    assert len(found) == 3 * 12 + 1
    left = {entry.name for entry in env.variation.origins if entry.source == "left out"}
    assert left == {"encoder_bias"}  # the task's range stands for those
    assert env.sim.params.get("damping").std(axis=0).min() > 0
    step = env.step(np.zeros((64, env.naction), np.float32))
    assert np.isfinite(step.obs.actor).all()


def test_training_uses_the_friction_model_of_the_fit_and_leaves_the_stand_behind(tmp_path: Path) -> None:
    names = ("friction", "friction_kcs", "friction_dqs", "friction_alpha", "mount_stiffness", "tilt")
    env = run_env(RunCfg(task="go2-velocity", params=kept(tmp_path, "go2", names)), 2, threads=1)
    assert env.sim.cfg.friction == "M2"
    assert env.sim.cfg.model.base != "mount"
    assert env.sim.params.get("friction_kcs").std() > 0
    left = {entry.name: entry.reason for entry in env.variation.origins if entry.source == "left out"}
    assert left == dict.fromkeys(("mount_stiffness", "tilt"), "belongs to the stand")
    for _ in range(3):
        step = env.step(np.zeros((2, env.naction), np.float32))
    assert np.isfinite(step.obs.actor).all()


def test_an_assessment_without_randomisation_is_at_the_estimate(tmp_path: Path) -> None:
    params = kept(tmp_path, "go2", ("damping",), x=1.0)
    env = run_env(RunCfg(task="go2-velocity", params=params), 3, threads=1, randomize=False, pushes=False)
    estimate = tu.read_calibration(params).values
    np.testing.assert_allclose(env.sim.params.get("damping"), np.tile(estimate, (3, 1)))


@pytest.fixture
def heavy(tmp_path: Path) -> Path:
    """A user's copy of the pendulum with another velocity limit."""
    folder = tmp_path / "heavy"
    shutil.copytree(load_robot("pendulum").model_path.parent, folder)
    text = (folder / "spec.toml").read_text()
    changed = re.sub(r"^velocity = [0-9.]+", f"velocity = {VELOCITY}", text, flags=re.MULTILINE)
    assert changed != text
    (folder / "spec.toml").write_text(changed)
    return folder


def test_a_run_on_a_robot_of_ones_own_is_recorded_resumed_assessed_and_played(heavy: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = tu.train("pendulum-swingup", out=out, steps=512, nenv=8, robot=heavy)
    assert json.loads((out / "config.json").read_text())["robot"] == str(heavy)
    assert {"range"} >= {entry["source"] for entry in json.loads((out / "origins.json").read_text())}
    assert run.assess(episodes=2).episodes == 2
    tu.train("pendulum-swingup", out=out, steps=1024, resume=True)
    for path in (out, out / "policy"):
        env, _ = open_run(path)
        assert env.robot.spec.joints[0].velocity == VELOCITY


def test_a_robot_with_other_joints_is_refused_in_one_line() -> None:
    with pytest.raises(TrueupError, match="lacks floating base.*joint.*docs/tasks.md") as caught:
        load_task("go2-velocity", "pendulum")
    assert "\n" not in str(caught.value)


def test_rows_under_a_fit_do_not_depend_on_the_size_of_the_batch(tmp_path: Path) -> None:
    names = ("armature", "damping", "kp", "delay", "torque_offset", "stop_low", "mass_scale", "inertia_shape")
    params = kept(tmp_path, "go2", names, bodies=("base", "FL_calf"))
    seen = []
    for nenv in (3, 7):
        env = run_env(RunCfg(task="go2-velocity", params=params, seed=5), nenv, threads=1)
        action = np.random.default_rng(0).normal(size=(120, 7, env.naction)).astype(np.float32)
        ends = 0
        for step_action in action:
            step = env.step(step_action[:nenv])
            ends += int(np.sum(step.ended < 3))
        seen.append((step.obs.actor[:3], env.sim.params.get("inertia")[:3], ends))
    assert seen[0][2] == seen[1][2] > 0
    for few, many in zip(seen[0][:2], seen[1][:2], strict=True):
        np.testing.assert_array_equal(few, many)
