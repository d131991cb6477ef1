"""From a run's folder, or an exported policy's, to an environment of one simulation and its policy; `TrainedRun`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import is_bundle, load_bundle
from trueup.policy.foreign.layout import Layout
from trueup.policy.mlp import JSON_FILE, MlpPolicy, load_policy
from trueup.policy.runner import Policy, PolicyRunner
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.foreign import bundle_task
from trueup.train.config import RunCfg
from trueup.train.folder import RunFolder
from trueup.train.play.assess import EPISODES, Assessment
from trueup.train.play.show import film_policy
from trueup.train.play.witness import open_witness
from trueup.train.train import assess_run, run_env
from trueup.train.trainer import TrainingOutcome


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """The result of `tu.train`: the run's folder and outcome."""

    path: Path
    outcome: TrainingOutcome

    def metrics(self) -> list[dict[str, float]]:
        """One record an iteration."""
        return RunFolder(self.path).read_metrics()

    def assess(self, *, episodes: int = EPISODES, randomize: bool = False) -> Assessment:
        """Falls, error and score over whole episodes, without exploration."""
        return assess_run(RunFolder(self.path), episodes=episodes, randomize=randomize)

    def film(self, path: str | Path, *, seconds: float = 10.0) -> Path:
        """Film the policy (.mp4 or .gif)."""
        return film_policy(*open_run(self.path), Path(path), seconds=seconds)

    def policy(self) -> MlpPolicy:
        """The exported policy: what a robot needs."""
        return load_policy(RunFolder(self.path).policy)


def open_policy(
    run: str | Path | None = None,
    *,
    robot: str | None = None,
    onnx: str | Path | None = None,
    layout: Layout | None = None,
    task: str | None = None,
    randomize: bool = False,
    seed: int = 0,
) -> tuple[TaskEnv, Policy]:
    """One simulation and a policy: of a run, exported folder or bundle, or of others with its layout and a task.

    task, robot  of a bundle: in place of its own
    """
    if run is not None and onnx is None and is_bundle(run):
        return open_bundle(run, task=task, robot=robot, randomize=randomize, seed=seed)
    if run is not None and onnx is None:
        return open_run(run, randomize=randomize, seed=seed)
    if run is not None or onnx is None or layout is None or task is None:
        raise TrueupError(
            "play takes a run or a bundle, or a network with its layout and a task (--onnx with --layout and --task)"
        )
    cfg = EnvCfg(nenv=1, threads=1, seed=seed, randomize=randomize, pushes=False, stagger=False)
    return open_witness(onnx, layout, task, cfg)


def open_run(path: str | Path, *, randomize: bool = False, seed: int = 0) -> tuple[TaskEnv, Policy]:
    """One simulation of the task, and the policy of a run's newest checkpoint or of an exported folder.

    A policy that needs the hidden factors is shown with randomisation.
    """
    if (Path(path) / JSON_FILE).exists():
        return _open_exported(Path(path), randomize, seed)
    folder = RunFolder(path)
    cfg, net = replace(folder.config(), seed=seed), folder.newest_policy()
    randomize = randomize or net.spec.kind == "privileged"
    return run_env(cfg, 1, threads=1, stagger=False, randomize=randomize, pushes=False), PolicyRunner(net)


def open_bundle(
    path: str | Path, *, task: str | None = None, robot: str | None = None, randomize: bool = False, seed: int = 0
) -> tuple[TaskEnv, Policy]:
    """One simulation of a bundle's task, and its policy."""
    bundle = load_bundle(path)
    cfg = EnvCfg(nenv=1, threads=1, seed=seed, randomize=randomize, pushes=False, stagger=False)
    env = TaskEnv(bundle_task(bundle.passport, task, robot), cfg)
    spec = bundle.passport.policy
    if spec.observation != env.observation_spec or spec.action != env.action_spec:
        raise TrueupError(f"this policy sees or moves other things than task {env.task.name!r} does now", file=path)
    return env, bundle.runner(1)


def _open_exported(path: Path, randomize: bool, seed: int) -> tuple[TaskEnv, Policy]:
    policy, run = load_policy(path), path.absolute().parent
    robot = RunFolder(run).config().robot if (run / "config.json").exists() else None  # of the run that it lies in
    cfg = RunCfg(task=policy.spec.task, robot=robot, seed=seed)
    env = run_env(cfg, 1, threads=1, stagger=False, randomize=randomize, pushes=False)
    if policy.spec.observation != env.observation_spec or policy.spec.action != env.action_spec:
        raise TrueupError(f"this policy sees or moves other things than task {policy.spec.task!r} does now", file=path)
    return env, policy
