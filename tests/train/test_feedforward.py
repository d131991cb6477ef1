"""Feedforward: offsets by the row of a motion, learned where targets are wrong, act there from the bundle alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from made_bundles import make_bundle

import trueup as tu
from trueup.core.errors import TrueupError
from trueup.motion.bodies import complete
from trueup.motion.motion import Motion, write_motion
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle, write_bundle
from trueup.policy.bundle.passport import PolicyOrigin
from trueup.policy.cycle import CycleSpec
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.net import NetWiring, PolicyNet
from trueup.policy.normalizer import Normalizer
from trueup.policy.runner import PolicyRunner
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.foreign import bundle_task
from trueup.tasks.load import load_task
from trueup.train.bundles.feedforward import carrying, learn_feedforward
from trueup.train.bundles.measure import goal_facts, make_passport, measure_ranges
from trueup.train.bundles.verbs import FeedforwardVerb
from trueup.train.bundles.warm import warm_layout
from trueup.world.actuators.target_stages import ConstantDelta

ROUNDS, OFFSET = 6, 0.06  # rad that the wrong robot adds to every target


def still(path: Path, robot: str, joint: str) -> Path:
    """A robot that stands and sways with one joint for two seconds."""
    model = tu.load_robot(robot)
    spec, rows = model.spec, 101
    joints = np.tile(spec.default_pose, (rows, 1))
    joints[:, spec.joint_names.index(joint)] += 0.2 * np.sin(np.linspace(0.0, 2.0 * np.pi, rows)) ** 2
    root = np.tile([0.0, 0.0, spec.base.stand_height], (rows, 1))
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (rows, 1))
    made = Motion(rate_hz=50.0, joint_names=spec.joint_names, root_pos=root, root_quat=upright, joint_pos=joints)
    write_motion(complete(made, model), path)
    return path


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> PolicyBundle:
    """A policy that always gives zero: the targets are those that hold the motion."""
    folder = tmp_path_factory.mktemp("feedforward")
    motion = still(folder / "sway.npz", "go2", "FL_calf_joint")
    env = TaskEnv(load_task(f"go2-track:{motion}"), EnvCfg(nenv=2, threads=1, randomize=False, pushes=False))
    normalizer = Normalizer(env.nactor)
    normalizer.update(np.random.default_rng(0).normal(0.0, 1.0, (10, env.nactor)))
    last = (np.zeros((env.naction, env.nactor), np.float32), np.zeros(env.naction, np.float32))
    net = PolicyNet(spec=NetWiring(), actor=(last,), normalizer=normalizer)
    ranges, commands = measure_ranges(env, PolicyRunner(net, 2), 0.2)
    origin = PolicyOrigin(format="trueup", run="zero")
    passport = make_passport(env, env.policy_spec(), goal_facts(env, commands), origin, ranges)
    return write_bundle(folder / "zero.bundle", passport, policy_onnx(net))


def wrong_by(offset: float, opened: PolicyBundle) -> tuple[float, np.ndarray]:
    """Rms error of the joints of a bundle's policy on a robot whose targets are wrong, and all its targets."""
    task = bundle_task(opened.passport)
    made = replace(task, terminations={}, target_stages=(ConstantDelta(offset),))
    env = TaskEnv(made, EnvCfg(nenv=1, threads=1, randomize=False, pushes=False, stagger=False))
    errors, targets, obs = [], [], env.reset()
    env.watch = lambda frame: errors.append(frame.joint_gap[0].copy())
    policy = opened.runner(1)
    for _ in range(int(env.goal.reference.last[0]) - 1):  # type: ignore[attr-defined]
        obs = env.step(np.asarray(policy(obs), np.float32)).obs
        targets.append(env._target[0].copy())
    return float(np.sqrt(np.mean(np.square(errors)))), np.array(targets)


def test_offsets_learned_where_targets_are_wrong_make_up_for_it(bundle: PolicyBundle, tmp_path: Path) -> None:
    verb = FeedforwardVerb(bundle.path, out=tmp_path / "fed.bundle", rounds=ROUNDS, nenv=2, threads=1)
    seen: list[int] = []
    found = learn_feedforward(verb, lambda k, made, left_s: seen.append(k), stages=(ConstantDelta(OFFSET),))
    assert seen == list(range(ROUNDS + 1))
    first, kept = found.rounds[0], found.rounds[found.kept]
    assert found.kept > 0
    assert kept.near_m == min(one.near_m for one in found.rounds)
    assert kept.joints_rad < 0.85 * first.joints_rad
    rows = np.array(found.bundle.passport.policy.action.cycle.rows)  # type: ignore[union-attr]
    assert rows.shape == (100, 12)
    assert -OFFSET < rows[20:80].mean() < -0.1 * OFFSET
    # from the bundle alone, through the clock: the same improvement on the same wrong robot
    before, plain = wrong_by(OFFSET, bundle)
    after, fed = wrong_by(OFFSET, load_bundle(tmp_path / "fed.bundle"))
    assert after < 0.85 * before
    np.testing.assert_allclose(fed - plain, rows[: len(fed)], atol=1e-9)  # the policy gives zero
    assert found.steps == (ROUNDS + 1) * 100 * 2
    assert any("feedforward" in note for note in found.bundle.passport.origin.notes)


def test_a_joint_that_carries_the_robot_learns_slowly(bundle: PolicyBundle) -> None:
    assert carrying(TaskEnv(load_task("go2-track"), EnvCfg(nenv=1, threads=1))).all()
    env = TaskEnv(load_task("g1-track"), EnvCfg(nenv=1, threads=1))
    names = np.array(env.robot.spec.joint_names)
    legs = [name for name in names if any(part in name for part in ("hip", "knee", "ankle", "waist"))]
    assert sorted(names[carrying(env)]) == sorted(legs)


def test_no_offsets_are_kept_where_none_help(bundle: PolicyBundle, tmp_path: Path) -> None:
    """One round of one copy at a time: the bundle is written, and is as good as the one before, or better."""
    done = tu.feedforward(bundle.path, out=tmp_path / "fed.bundle", rounds=1, nenv=1, threads=1)
    assert done.rounds[done.kept].near_m <= done.rounds[0].near_m
    assert done.bundle.passport.policy.task == bundle.passport.policy.task
    other = tu.feedforward(bundle.path, out=tmp_path / "o.bundle", task="go2-track:trot", rounds=1, nenv=1, threads=1)
    assert other.bundle.passport.policy.task == "go2-track:trot"
    assert len(other.bundle.passport.policy.action.cycle.rows) != 100  # type: ignore[union-attr]


def test_what_repeats_no_motion_is_refused(bundle: PolicyBundle, tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="not built in"):
        tu.feedforward(make_bundle(tmp_path / "toy.bundle").path, out=tmp_path / "out.bundle")
    with pytest.raises(TrueupError, match="--rounds must be at least 1"):
        tu.feedforward(bundle.path, out=tmp_path / "out.bundle", rounds=0)
    done = tu.feedforward(bundle.path, out=tmp_path / "fed.bundle", rounds=1, nenv=1, threads=1)
    with pytest.raises(TrueupError, match="by a clock already"):
        tu.feedforward(done.bundle.path, out=tmp_path / "twice.bundle")
    with pytest.raises(TrueupError, match="begin from the policy that it was learned for"):
        warm_layout(done.bundle.path)
    assert warm_layout(bundle.path) is None
    two = f"go2-track:{bundle.passport.policy.task.partition(':')[2]},trot"
    with pytest.raises(TrueupError, match="follows 2 motions"):
        tu.feedforward(bundle.path, out=tmp_path / "out.bundle", task=two)
    assert not (tmp_path / "out.bundle").exists()


def test_a_training_that_begins_anywhere_in_the_motion_has_the_offsets_of_its_rows(
    bundle: PolicyBundle, tmp_path: Path
) -> None:
    done = tu.feedforward(bundle.path, out=tmp_path / "fed.bundle", rounds=1, nenv=1, threads=1)
    spec = done.bundle.passport.policy
    ramp = np.linspace(0.0, 0.1, 100)[:, None].repeat(12, axis=1)
    cycle = CycleSpec(rows=tuple(map(tuple, ramp.tolist())))
    action = msgspec.structs.replace(spec.action, cycle=cycle)
    passport = msgspec.structs.replace(done.bundle.passport, policy=msgspec.structs.replace(spec, action=action))
    cfg = EnvCfg(nenv=8, threads=1, randomize=False, pushes=False, training=True)
    env = TaskEnv(bundle_task(passport), cfg)
    plain = TaskEnv(bundle_task(bundle.passport), cfg)
    rows = env.goal.at - 1  # type: ignore[attr-defined]
    assert len(set(rows.tolist())) > 3
    still = np.zeros((8, env.naction), np.float32)
    for _ in range(3):
        rows = env.goal.at - 1  # type: ignore[attr-defined]
        goes_on = np.setdiff1d(np.arange(8), env.step(still).ended)
        plain.step(still)
        assert len(goes_on) > 4
        np.testing.assert_allclose((env._target - plain._target)[goes_on, 0], ramp[rows[goes_on], 0], atol=1e-6)
