"""From a run to a bundle: the policy of the run, measured ranges, hashes of its origin, and three ways alike."""

import json
import subprocess
import sys
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from made_bundles import make_bundle, make_net
from made_calibration import made_calibration
from test_trainer import CFG, STEP

import trueup as tu
from trueup.core.arrays import sha256_of_file
from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import load_bundle
from trueup.policy.bundle.robot_check import check_against_robot
from trueup.policy.net import NetWiring
from trueup.policy.runner import PolicyRunner
from trueup.rl.settings import DistillCfg
from trueup.robot.load import load_robot
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.train.bundles.measure import goal_facts, measure_ranges
from trueup.train.bundles.parity import check_parity
from trueup.train.bundles.torch_policy import TorchPolicy
from trueup.train.config import Budget
from trueup.train.folder import RunFolder
from trueup.train.play.play import open_run
from trueup.train.train import train
from trueup.world.fitted.calibration import write_calibration


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "swing"
    train(CFG, path, Budget(steps=2 * STEP))
    train(CFG, path, Budget(steps=3 * STEP), resume=True)
    return path


@pytest.fixture(scope="module")
def exported(run):
    return tu.export(run, out=run.parent / "swing.bundle", seconds=2.0)


def test_a_bundle_acts_as_its_run_does(run, exported):
    env, policy = open_run(run)
    runner = exported.bundle.runner(1)
    obs = env.reset()
    for _ in range(5):
        np.testing.assert_allclose(runner(obs), policy(obs), atol=1e-6)
        obs = env.step(policy(obs)).obs
    assert exported.parity.keys() == {"onnxruntime", "torch"}
    assert all(value <= 1e-5 for value in exported.parity.values())


def test_the_passport_says_where_it_comes_from_and_fits_its_robot(run, exported):
    passport, robot = exported.bundle.passport, load_robot("pendulum")
    assert (passport.policy.task, passport.robot.name, passport.physics_hz) == ("pendulum-swingup", "pendulum", 200.0)
    assert passport.torque_limit == (0.5,)  # of the task: it cannot lift the pendulum at once
    assert passport.origin.files["config.json"] == sha256_of_file(run / "config.json")
    assert passport.origin.files["checkpoints/00000003"] == sha256_of_file(
        run / "checkpoints" / "00000003" / "arrays.safetensors"
    )
    assert (passport.origin.run, passport.origin.steps) == ("swing", 3 * STEP)
    check_against_robot(passport, robot.spec, robot.model_sha256)


def test_ranges_hold_what_the_policy_saw(exported):
    ranges = exported.bundle.passport.ranges
    low, high, least, most = (np.array(part) for part in (ranges.low, ranges.high, ranges.minimum, ranges.maximum))
    assert ranges.rows == 48 * 50
    assert (least <= low).all()
    assert (low < high).all()
    assert (high <= most).all()
    assert np.abs([least[:2], most[:2]]).max() <= 1.0  # sine and cosine


def test_an_older_checkpoint_may_be_chosen_and_a_missing_one_is_named(run, tmp_path):
    older = tu.export(run, out=tmp_path / "older.bundle", checkpoint=2, seconds=0.2).bundle
    assert older.passport.origin.steps == 2 * STEP
    with pytest.raises(TrueupError, match=r"no checkpoint of iteration 9 \(it has 2, 3\)"):
        tu.export(run, out=tmp_path / "none.bundle", checkpoint=9)


def test_what_cannot_be_exported_is_refused(run, tmp_path, monkeypatch):
    with pytest.raises(TrueupError, match="no run here"):
        tu.export(tmp_path, out=tmp_path / "x.bundle")
    privileged = replace(make_net(), spec=NetWiring(kind="privileged"))
    monkeypatch.setattr(RunFolder, "policy_in", lambda self, found: privileged)
    with pytest.raises(TrueupError, match="hidden factors"):
        tu.export(run, out=tmp_path / "x.bundle")
    assert not (tmp_path / "x.bundle").exists()


def test_a_student_takes_its_memory_along(run, tmp_path):
    cfg = replace(CFG, teacher=str(run), learner=DistillCfg(kind="action", history=5, hidden=(16,)))
    train(cfg, tmp_path / "student", Budget(steps=2 * STEP))
    done = tu.export(tmp_path / "student", out=tmp_path / "student.bundle", seconds=0.4)
    assert done.bundle.passport.policy.net.steps == 5
    assert done.bundle.net(1).has_memory
    assert done.bundle.passport.origin.notes == ("student of swing",)
    assert max(done.parity.values()) <= 1e-5


def test_hashes_of_the_calibration_and_its_logs_travel_along(tmp_path):
    fit = made_calibration(load_robot("pendulum"), ("damping",))
    fit = msgspec.structs.replace(fit, provenance={"logs": [{"sha256": "a" * 64}, {"sha256": "b" * 64}]})
    params = write_calibration(fit, tmp_path / "fit")
    train(replace(CFG, params=str(params)), tmp_path / "run", Budget(steps=STEP))
    files = tu.export(tmp_path / "run", out=tmp_path / "x.bundle", seconds=0.2).bundle.passport.origin.files
    assert files["calibration"] == sha256_of_file(params)
    assert (files["calibration/log0"], files["calibration/log1"]) == ("a" * 64, "b" * 64)


@pytest.mark.parametrize("kind", ["plain", "latent", "action"])
def test_torch_written_apart_computes_the_same(kind):
    net = make_net(kind, squash=2.0)
    mine, theirs, rng = PolicyRunner(net, 2), TorchPolicy(net, 2), np.random.default_rng(0)
    for step in range(8):
        obs = rng.normal(0, 2, (2, 36)).astype(np.float32)
        if step == 5:
            mine.restart(np.array([1]))
            theirs.restart(np.array([1]))
        np.testing.assert_allclose(theirs.act(obs), mine.act(obs), atol=1e-5)


def test_a_policy_that_is_another_fails_parity_by_name(tmp_path):
    bundle = make_bundle(tmp_path / "toy.bundle", "latent")
    same = check_parity(bundle, {"torch": lambda nrow: TorchPolicy(make_net("latent"), nrow)})
    assert max(same.values()) <= 1e-5
    with pytest.raises(TrueupError, match="torch and NumPy give actions that differ by"):
        check_parity(bundle, {"torch": lambda nrow: TorchPolicy(make_net("latent", seed=1), nrow)})


def test_goals_are_told_with_units_and_measured_where_the_task_names_no_range():
    env = make_env(load_task("go2-velocity"), EnvCfg(nenv=2, threads=1))
    goal = goal_facts(env, np.zeros((2, 3), np.float32))
    assert (goal.columns, goal.units) == (("forward", "sideways", "turn"), ("m/s", "m/s", "rad/s"))
    assert (goal.low, goal.high, goal.source) == ((-1.0, -0.5, -1.0), (1.0, 0.5, 1.0), "task")
    np.testing.assert_allclose(goal.rate, (4.0, 4.0, 8.0))
    arm = make_env(load_task("z1-reach"), EnvCfg(nenv=4, threads=1))
    still = type(
        "Still", (), {"restart": lambda self, rows: None, "__call__": lambda self, obs: np.zeros((4, 6), "f4")}
    )
    ranges, commands = measure_ranges(arm, still(), 0.1)
    found = goal_facts(arm, commands)
    assert (found.source, len(found.low)) == ("measured", 7)
    assert (np.array(found.low) <= np.array(found.high)).all()
    assert len(ranges.low) == arm.nactor


def test_a_motion_is_measured_to_its_end():
    env = make_env(load_task("go2-track:trot"), EnvCfg(nenv=2, threads=1, stagger=False))
    still = type(
        "Still", (), {"restart": lambda self, rows: None, "__call__": lambda self, obs: np.zeros((2, 12), "f4")}
    )
    ranges, _ = measure_ranges(env, still(), 0.1)
    assert ranges.seconds == pytest.approx(env.task.rates.episode_s)
    assert ranges.rows == 2 * np.ceil(env.task.rates.episode_s / env.control_dt)


@pytest.mark.medium
def test_the_commands_export_and_play_a_bundle(run, tmp_path):
    out = tmp_path / "swing.bundle"
    command = [sys.executable, "-m", "trueup", "export", str(run), "--out", str(out), "--seconds", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "torch" in done.stdout
    assert load_bundle(out).hash[:16] in done.stdout
    film = tu.play(out, film=tmp_path / "swing.gif", seconds=0.2)
    assert film.stat().st_size > 1000
    spec = json.loads((out / "spec.json").read_text())
    spec["policy"]["kp"] = [1.0]
    (out / "spec.json").write_text(json.dumps(spec))
    refused = [sys.executable, "-m", "trueup", "play", str(out), "--film", str(tmp_path / "x.gif")]
    done = subprocess.run(refused, capture_output=True, text=True)
    assert done.returncode == 2
    assert "spec.json: the hash does not fit" in done.stderr
