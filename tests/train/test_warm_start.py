"""train --from BUNDLE: the policy of a bundle, ours or others', is the start; a delta action stays in training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from made_bundles import make_bundle
from test_trainer import CFG, STEP

import trueup as tu
from trueup.core.errors import TrueupError
from trueup.models.delta_net import DeltaNet, DeltaSpec, save_delta
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle, write_bundle
from trueup.policy.graph.write import OnnxWriter
from trueup.policy.runner import PolicyRunner
from trueup.rl.ppo import Ppo
from trueup.rl.settings import PpoCfg, SacCfg
from trueup.robot.load import load_robot
from trueup.tasks.foreign import bundle_task
from trueup.tasks.load import load_task
from trueup.tasks.terms.tracking import Lost
from trueup.train.bundles.warm import (
    CRITIC_FIRST,
    KL_TARGET,
    LEARNING_RATE,
    STD,
    warm_layout,
    warm_net,
    warm_settings,
    warm_task,
)
from trueup.train.config import Budget
from trueup.train.folder import RunFolder
from trueup.train.train import make_learner, train, tuned
from trueup.train.verbs import TrainVerb, run_config
from trueup.world.actuators.target_stages import LearnedDelta


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> PolicyBundle:
    path = tmp_path_factory.mktemp("warm") / "swing"
    train(CFG, path, Budget(steps=2 * STEP))
    return tu.export(path, out=path.parent / "swing.bundle", seconds=2.0).bundle


def raw(bundle: PolicyBundle, path: Path) -> PolicyBundle:
    """The same policy as others write theirs: dense layers on observations that are not normalised."""
    net, spec = warm_net(bundle.path), bundle.passport
    scale = 1.0 / (np.sqrt(net.normalizer.var) + 0.01)
    out, x = OnnxWriter("theirs"), "obs"
    out.port("obs", (None, len(scale)))
    for k, (weight, bias) in enumerate(net.actor):
        w, b = (weight * scale, bias - weight @ (scale * net.normalizer.mean)) if k == 0 else (weight, bias)
        names = [out.constant(f"{k}{n}", np.asarray(v, np.float32)) for n, v in (("w", w), ("b", b))]
        last = k == len(net.actor) - 1
        x = out.add("Gemm", [x, *names], "actions" if last else None, transB=1)
        x = x if last else out.add("Elu", [x])
    out.port("actions", (None, net.naction), out=True)
    origin = msgspec.structs.replace(spec.origin, format="rl_sar")
    return write_bundle(path, msgspec.structs.replace(spec, origin=origin), out.encode())


def seen(bundle: PolicyBundle) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    ranges = bundle.passport.ranges
    assert ranges is not None
    rng = np.random.default_rng(0)
    return rng.uniform(ranges.low, ranges.high, (50, len(ranges.low))).astype(np.float32)


def test_a_training_begins_with_what_the_bundle_does(bundle: PolicyBundle) -> None:
    cfg = tuned(run_config(TrainVerb("pendulum-swingup", start=bundle.path, nenv=CFG.nenv, threads=1)))
    assert isinstance(cfg.learner, PpoCfg)
    assert (cfg.learner.net.std, cfg.learner.critic_first) == (STD, CRITIC_FIRST)
    learner = make_learner(cfg)
    learner.start_with(warm_net(bundle.path))
    obs = seen(bundle)
    np.testing.assert_allclose(PolicyRunner(learner.policy()).act(obs), bundle.runner(50).act(obs), atol=1e-5)
    before = PolicyRunner(learner.policy()).act(obs)
    learner.iterate()  # the critic learns alone, and the statistics of observations stay
    np.testing.assert_allclose(PolicyRunner(learner.policy()).act(obs), before, atol=1e-6)
    learner.close()


def test_a_bundle_learns_by_small_steps_unless_settings_are_given(bundle: PolicyBundle) -> None:
    plain = run_config(TrainVerb("pendulum-swingup", start=bundle.path)).learner
    given = run_config(TrainVerb("pendulum-swingup", start=bundle.path, option=("kl_target=0.03",))).learner
    assert isinstance(plain, PpoCfg)
    assert isinstance(given, PpoCfg)
    assert (plain.kl_target, plain.learning_rate) == (KL_TARGET, LEARNING_RATE)
    assert given.kl_target == 0.03
    assert given.critic_first == plain.critic_first == CRITIC_FIRST


def test_what_leaves_a_training_from_a_bundle_is_averaged_from_its_start(bundle: PolicyBundle) -> None:
    cfg = tuned(run_config(TrainVerb("pendulum-swingup", start=bundle.path, nenv=CFG.nenv, threads=1)))
    assert isinstance(cfg.learner, PpoCfg)
    learner = make_learner(replace(cfg, learner=replace(cfg.learner, critic_first=0, average=10)))
    assert isinstance(learner, Ppo)
    learner.start_with(warm_net(bundle.path))
    before = learner.actor.parameters.flat.clone()
    learner.iterate()
    np.testing.assert_allclose(learner.average.flat, before + 0.1 * (learner.actor.parameters.flat - before), atol=1e-6)
    learner.close()


def test_who_follows_a_motion_already_does_not_fail_by_drifting() -> None:
    task = load_task("g1-track")
    warm = warm_task(task)
    assert any(isinstance(end, Lost) for end in task.terminations.values())
    assert list(warm.terminations) == ["astray"]
    assert warm.goal.limit_m[0] == warm.goal.limit_m[1]  # type: ignore[attr-defined]
    assert warm_task(load_task("go2-velocity")) == load_task("go2-velocity")


def test_a_network_without_a_normaliser_acts_as_before(bundle: PolicyBundle, tmp_path: Path) -> None:
    theirs = raw(bundle, tmp_path / "theirs.bundle")
    obs = seen(bundle)
    np.testing.assert_allclose(PolicyRunner(warm_net(theirs.path)).act(obs), theirs.runner(50).act(obs), atol=1e-4)
    layout = warm_layout(theirs.path)
    assert layout is not None
    assert layout.observation == theirs.passport.policy.observation
    assert warm_layout(bundle.path) is None


def test_observations_far_beyond_what_was_measured_are_not_cut_off(bundle: PolicyBundle, tmp_path: Path) -> None:
    theirs = raw(bundle, tmp_path / "theirs.bundle")
    ranges = theirs.passport.ranges
    assert ranges is not None
    middle, reach = np.array(ranges.mean), np.array(ranges.maximum) - np.array(ranges.mean)
    wide = np.stack([middle + share * reach for share in (-2.8, 2.8)]).astype(np.float32)
    np.testing.assert_allclose(PolicyRunner(warm_net(theirs.path)).act(wide), theirs.runner(2).act(wide), atol=1e-4)


def test_what_cannot_begin_a_training_is_refused(bundle: PolicyBundle, tmp_path: Path) -> None:
    student = make_bundle(tmp_path / "student.bundle", "action")
    with pytest.raises(TrueupError, match="dense layers with ELU"):
        warm_net(student.path)
    with pytest.raises(TrueupError, match="for sac"):
        warm_settings(SacCfg(), bundle.path)
    with pytest.raises(TrueupError, match="leave --latent out"):
        warm_settings(replace(PpoCfg(), net=replace(PpoCfg().net, latent=4)), bundle.path)
    theirs = raw(bundle, tmp_path / "theirs.bundle")
    unmeasured = msgspec.structs.replace(theirs.passport, ranges=None, ranges_missing="not run")
    bare = write_bundle(tmp_path / "bare.bundle", unmeasured, theirs.onnx)
    with pytest.raises(TrueupError, match="import it again"):
        warm_net(bare.path)


def saved_delta(folder: Path) -> Path:
    """A delta action of the pendulum."""
    robot = load_robot("pendulum").spec
    spec = DeltaSpec(
        robot=robot.name, joint_names=robot.joint_names, default_pose=tuple(robot.default_pose.tolist()),
        corrected=(0,), base=False, rate_hz=25.0, limit_rad=0.5, past=2,
    )  # fmt: skip
    one = np.ones(spec.ninput, np.float32)
    zero = np.zeros((1, spec.ninput), np.float32)
    save_delta(DeltaNet(spec=spec, linear=zero, layers=(), mean=0 * one, std=one, low=-one, high=one), folder)
    return folder


def test_a_delta_action_stays_in_training(tmp_path: Path) -> None:
    """The run's simulations have it; the bundle, and the task that it is evaluated in, have not."""
    saved_delta(tmp_path / "d")
    cfg = replace(CFG, delta=str(tmp_path / "d"))
    learner = make_learner(cfg)
    assert any(isinstance(stage, LearnedDelta) for stage in learner.env.sim.target_stages)  # type: ignore[attr-defined]
    learner.close()
    train(cfg, tmp_path / "run", Budget(steps=STEP))
    exported = tu.export(tmp_path / "run", out=tmp_path / "run.bundle", seconds=1.0).bundle
    opened = load_bundle(exported.path)
    assert not bundle_task(opened.passport).target_stages
    assert not [path for path in exported.path.iterdir() if "delta" in path.name]
    assert any("delta action" in note for note in opened.passport.origin.notes)
    assert RunFolder(tmp_path / "run").config().delta == str(tmp_path / "d")


def test_a_delta_action_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(TrueupError):
        load_bundle(saved_delta(tmp_path))


def test_the_task_is_that_of_the_start_if_none_is_named(bundle: PolicyBundle) -> None:
    run = bundle.path.with_suffix("")
    for start in (bundle.path, run):
        assert run_config(TrainVerb(start=start, out=run / "on", nenv=CFG.nenv, threads=1)).task == CFG.task
    with pytest.raises(TrueupError, match="name a task and --out, or --from RUN"):
        run_config(TrainVerb(out=run / "on"))
    with pytest.raises(TrueupError, match="name a task and --out"):
        tu.train(start=bundle.path, steps=1)
