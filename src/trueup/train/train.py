"""`train`: from a RunCfg to a trained run, as on the command line, without printing."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from trueup.core.checkpoint import read_checkpoint
from trueup.core.documents import write_json
from trueup.core.errors import TrueupError
from trueup.core.files import writing
from trueup.core.machine import usable_cores
from trueup.policy.bundle.bundle import is_bundle
from trueup.policy.mlp import MlpPolicy
from trueup.policy.net import PolicyNet
from trueup.policy.runner import PolicyRunner
from trueup.rl.env import part
from trueup.rl.learner import Learner, learner_class
from trueup.rl.settings import DistillCfg
from trueup.rl.stepper import bad_rows
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.foreign import with_layout
from trueup.tasks.load import load_task, make_env
from trueup.tasks.task import error_metric
from trueup.train.bundles.warm import warm_net, warm_task
from trueup.train.config import Budget, RunCfg
from trueup.train.folder import RunFolder
from trueup.train.play.assess import ASSESS_SEED, EPISODES, Assessment, assess
from trueup.train.play.episode import EPISODE_FILE, record_episode
from trueup.train.play.show import film_policy
from trueup.train.reserve import FILM_S, Reserve, measured_reserve
from trueup.train.trainer import Periodic, Progress, Trainer, TrainingOutcome
from trueup.world.fitted.origins import ValueOrigin
from trueup.world.randomization.adr import AdrCfg

_LOG = logging.getLogger(__name__)
ORIGINS_FILE = "origins.json"
_ASSESS_EVERY_S = 60.0
_SIZES = (512, 1024, 2048)
_ENOUGH = 0.75  # of the best pace: with half as many simulations, about two thirds of the steps learn the same
_MEASURE_S = 0.4
_NEAR = 2.0  # times the target: with exploration and randomisation the error is larger than in an assessment


def train(
    cfg: RunCfg,
    out: str | Path,
    budget: Budget,
    *,
    resume: bool = False,
    show: Callable[[Progress], None] = lambda progress: None,
    started: float | None = None,
) -> TrainingOutcome:
    """Start a run in folder `out`, or continue an existing one with `resume`, until the budget is spent.

    started  monotonic time from which `budget.minutes` counts; default: now. The last film is made within it
    """
    folder, started = RunFolder(out), time.monotonic() if started is None else started
    if budget.minutes is None and budget.steps is None and budget.target is None:
        raise TrueupError("a run needs an end: --minutes, --steps or --target")
    cfg = folder.config() if resume else tuned(cfg)
    learner = make_learner(cfg)
    if not resume:
        folder.create(cfg)
        write_json(folder.path / ORIGINS_FILE, run_origins(cfg))
    if cfg.start is not None:
        begin_with(learner, Path(cfg.start))
    reserve = _reserve(cfg, budget)
    extras = _extras(cfg, folder, budget)
    trainer = Trainer(folder, learner, extras, resume=resume, started=started, reserve_s=reserve.total_s)
    outcome = trainer.run(budget, show)
    net = folder.newest_policy()
    if net.spec.kind != "privileged":
        MlpPolicy(run_env(cfg, 1, threads=1).policy_spec(), net).save(folder.policy)
    if budget.film_minutes > 0 and outcome.reason != "interrupted" and outcome.iteration:
        left = np.inf if budget.minutes is None else 60.0 * budget.minutes - trainer.elapsed_s
        _film_end(cfg, folder, reserve.film_length(left))
    return outcome


def _reserve(cfg: RunCfg, budget: Budget) -> Reserve:
    """Time to reserve for the end of the run; zero, unmeasured, without a time budget."""
    films = budget.film_minutes > 0
    if budget.minutes is None or not (films or budget.assessed):
        return Reserve()
    return measured_reserve(
        lambda nenv: run_env(cfg, nenv, threads=1 if nenv == 1 else None, stagger=False),
        EPISODES,
        films=films,
        assesses=budget.assessed,
    )


def tuned(cfg: RunCfg) -> RunCfg:
    """Fill in unset numbers of simulations and threads by measuring the task on this machine.

    Takes the smallest number of simulations with nearly the best pace: with fewer, PPO learns more from each step;
    below 512 learning becomes unreliable.
    """
    load_task(cfg.task, cfg.robot)  # a name that does not exist is refused before anything is measured
    nenv = cfg.nenv or cfg.learner.nenv
    sizes = (nenv,) if nenv else _SIZES
    counts = (cfg.threads,) if cfg.threads else tuple(sorted({1, usable_cores()}))
    if len(sizes) == len(counts) == 1:
        return replace(cfg, nenv=sizes[0], threads=counts[0])
    paces = {(size, count): pace(run_env(cfg, size, threads=count)) for size in sizes for count in counts}
    best = max(paces.values())
    size = min(size for (size, _), value in paces.items() if value >= _ENOUGH * best)
    return replace(cfg, nenv=size, threads=max(counts, key=lambda count: paces[size, count]))


def pace(env: TaskEnv) -> float:
    """Control steps per second of all simulations together, with small random actions."""
    env.reset()
    rng = np.random.default_rng(0)
    actions = rng.normal(0.0, 0.3, (8, env.nenv, env.naction)).astype(np.float32)
    env.step(actions[0])
    start, steps = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < _MEASURE_S or steps == 0:
        env.step(actions[steps % len(actions)])
        steps += 1
    return steps * env.nenv / passed


def run_origins(cfg: RunCfg) -> tuple[ValueOrigin, ...]:
    """Where the parameters of a run's simulations come from."""
    return run_env(cfg, 1, threads=1).variation.origins


def make_learner(cfg: RunCfg) -> Learner:
    """The learner that the type of `cfg.learner` selects, in its environment; a student with its teacher's policy."""
    is_student = isinstance(cfg.learner, DistillCfg)
    if is_student != (cfg.teacher is not None):
        raise TrueupError("a student (distill) needs a teacher, and no other learner takes one: --teacher RUN")
    more = () if cfg.teacher is None else (RunFolder(cfg.teacher).newest_policy(),)
    env = run_env(cfg, cfg.nenv, training=True)
    return learner_class(cfg.learner)(env, cfg.learner, cfg.seed, *more)


def begin_with(learner: Learner, start: Path) -> None:
    """Give a learner the networks and statistics of another run; a checkpoint of its own replaces them on resuming.

    Of a bundle it takes the policy: the critic is new.
    """
    try:
        if is_bundle(start):
            learner.start_with(warm_net(start))
        else:
            learner.start_from(RunFolder(start).newest().arrays)
    except (KeyError, ValueError, RuntimeError) as error:
        reason = f"its networks do not fit this task and learner ({error}); train without --from"
        raise TrueupError(reason, file=start) from error


def run_env(
    cfg: RunCfg,
    nenv: int,
    *,
    threads: int | None = None,
    stagger: bool = True,
    randomize: bool | None = None,
    pushes: bool | None = None,
    training: bool = False,
) -> TaskEnv:
    """The environment of a run, or one alike with another number of simulations; None means as in the run.

    Without `randomize` every simulation has the estimates of the run's calibration, or the robot's nominal parameters.
    `training`: ranges grow and commands change in steps; else ranges are full from the start and commands rate-limited.
    """
    randomize = cfg.randomize if randomize is None else randomize
    env_cfg = EnvCfg(
        nenv=nenv,
        threads=cfg.threads if threads is None else threads,
        seed=cfg.seed,
        randomize=randomize,
        pushes=cfg.randomize if pushes is None else pushes,
        params=None if cfg.params is None else Path(cfg.params),
        posterior=cfg.posterior and randomize,
        actuator=None if cfg.actuator is None else Path(cfg.actuator),
        delta=None if cfg.delta is None else Path(cfg.delta),
        adr=AdrCfg() if cfg.adr and randomize else None,
        training=training,
        stagger=stagger,
    )
    task = load_task(cfg.task, cfg.robot)
    if cfg.layout is not None:
        task = with_layout(task, cfg.layout)
        task = warm_task(task) if training else task
    return make_env(replace(task, ramp_s=_ramp(cfg, task.ramp_s)), env_cfg)


def _ramp(cfg: RunCfg, ramp_s: tuple[float, float]) -> tuple[float, float]:
    """When ranges and late costs grow: after another run they go on growing; who follows a teacher needs no easy start.

    A bundle does not tell how long it was trained: nothing is held back.
    """
    if isinstance(cfg.learner, DistillCfg) or (cfg.start is not None and cfg.trained_s == 0.0):
        return 0.0, 0.0
    begin, end = (time - cfg.trained_s for time in ramp_s)
    return (begin, end) if end > 0.0 else (0.0, 0.0)


def assess_run(
    folder: RunFolder, *, episodes: int = EPISODES, seed: int = ASSESS_SEED, randomize: bool = False
) -> Assessment:
    """Assess the newest checkpoint of a run on episodes that training never saw; nominal or randomised."""
    cfg = replace(folder.config(), seed=seed)
    return _assess(cfg, folder.newest_policy(), episodes, randomize)


def assess_end(folder: RunFolder) -> Assessment:
    """Assess the policy at the end of a run; appends the result to its assessments and keeps one episode."""
    result = assess_run(folder)
    _append(folder, int(folder.newest().facts["steps"]), result)
    _keep_episode(folder)
    return result


def _keep_episode(folder: RunFolder) -> None:
    """Keep one episode of the newest policy, step by step, for the page of the run."""
    net, cfg = folder.newest_policy(), replace(folder.config(), seed=ASSESS_SEED)
    env = run_env(cfg, 1, threads=1, stagger=False, randomize=net.spec.kind == "privileged", pushes=False)
    record_episode(env, PolicyRunner(net), env.task.rates.episode_s).save(folder.path / EPISODE_FILE)


def replay_dump(dump: Path) -> list[str]:
    """Repeat the step of a dump (RUN/nan); returns the outputs that are not finite, with their rows."""
    cfg, found = RunFolder(dump.parent).config(), read_checkpoint(dump)
    if found.facts.get("step") is None:
        raise TrueupError(
            f"{found.facts.get('what')} belongs to no control step: resume the run to see it again", file=dump
        )
    env = run_env(cfg, cfg.nenv, training=True)
    env.restore(part(found.arrays, "env/"))
    action = np.asarray(found.arrays["action"], np.float32)
    step = env.step(action)
    outputs = {"action": action, "reward": step.reward, "obs.actor": step.obs.actor, "obs.critic": step.obs.critic}
    return [f"{name}: rows {rows}" for name, values in outputs.items() if (rows := bad_rows(values))]


def _assess(cfg: RunCfg, net: PolicyNet, episodes: int, randomize: bool) -> Assessment:
    """A policy that needs the hidden factors is always assessed with randomisation."""
    randomize = randomize or net.spec.kind == "privileged"
    env = run_env(cfg, episodes, stagger=False, randomize=randomize, pushes=randomize)
    return assess(env, PolicyRunner(net, episodes), env.task.score, env.task.rates.episode_s)


def _extras(cfg: RunCfg, folder: RunFolder, budget: Budget) -> tuple[Periodic, ...]:
    extras = []
    if budget.film_minutes > 0:
        extras.append(Periodic(60.0 * budget.film_minutes, lambda learner: _film(cfg, folder, learner)))
    if budget.target is not None:
        target, error = budget.target, error_metric(load_task(cfg.task))
        extras.append(
            Periodic(
                _ASSESS_EVERY_S,
                lambda learner: _reached(cfg, folder, learner, target) and not budget.past_target,
                lambda metrics: error is None or metrics[error] < _NEAR * target,
            )
        )
    return tuple(extras)


def _film(cfg: RunCfg, folder: RunFolder, learner: Learner) -> bool:
    _film_net(cfg, folder, learner.policy(), learner.steps_done, FILM_S)
    return False


def _film_end(cfg: RunCfg, folder: RunFolder, seconds: float) -> None:
    """Film the final policy; without ffmpeg the run goes on without a film."""
    steps = int(folder.newest().facts["steps"])
    try:
        _film_net(cfg, folder, folder.newest_policy(), steps, seconds)
    except TrueupError as error:
        _LOG.warning("no film was made: %s", error)


def _film_net(cfg: RunCfg, folder: RunFolder, net: PolicyNet, steps: int, seconds: float) -> None:
    path = folder.films / f"{steps:010d}.mp4"
    if not path.exists():
        env = run_env(cfg, 1, threads=1, stagger=False)
        film_policy(env, PolicyRunner(net), path, seconds=seconds)


def _reached(cfg: RunCfg, folder: RunFolder, learner: Learner, target: float) -> bool:
    """Assess on episodes that training never saw and record the result; true if it reaches the target."""
    seeded = replace(cfg, seed=ASSESS_SEED + learner.iteration)
    result = _assess(seeded, learner.policy(), EPISODES, randomize=False)
    _append(folder, learner.steps_done, result, reached=result.reaches(target))
    return result.reaches(target)


def _append(folder: RunFolder, steps: int, result: Assessment, **more: object) -> None:
    record: dict[str, object] = {"steps": steps, "falls": result.falls, "error": result.error, "score": result.score}
    record |= {"episodes": result.episodes, "error_se": result.error_se, **more}
    path = folder.path / "assessments.jsonl"
    with writing(path), path.open("a") as file:
        file.write(json.dumps(record) + "\n")
