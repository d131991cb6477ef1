"""`trueup train TASK --minutes 15 --out runs/NAME`: learn a policy in simulation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from trueup.core.outputs import OutFolder

if TYPE_CHECKING:
    from trueup.rl.settings import LearnerCfg
    from trueup.train.config import Budget, RunCfg


@dataclass(frozen=True, kw_only=True)
class TrainVerb:
    """Train a policy in simulation on this computer's cores.

    In: a task (and, with --params, what a calibration knows). Out: OUT with config.json, checkpoints, metrics.jsonl,
    TensorBoard scalars, films and a page (index.html). Ctrl-C saves and ends; --resume continues exactly where the run
    was.
    """

    task: tyro.conf.Positional[str | None] = None
    """Name of a task, e.g. go2-velocity; left out with --resume."""
    out: OutFolder | None = None
    """Folder of the run."""
    minutes: float | None = None
    """Stop after this time, counting what a resumed run has spent already."""
    steps: int | None = None
    """Stop after this many control steps of all simulations together."""
    target: float | None = None
    """Stop when an assessment reaches it: error below it and no falls; for tasks without an error a score."""
    resume: OutFolder | None = None
    """Continue the run in this folder."""
    seed: int = 0
    """Of everything random."""
    robot: str | None = None
    """Train on this robot (a name or your own folder) in place of the task's; it must have the same joints."""
    params: Path | None = None
    """Folder or params.json of a calibration: everything that was fitted is drawn from its posterior."""
    posterior: bool = True
    """Draw from the calibration's posterior; --no-posterior: its estimate in every simulation."""
    actuator: Path | None = None
    """Folder of a learned actuator (`trueup calibrate actuator`): it drives the joints."""
    randomize: bool = True
    """Draw masses, friction, delays and so on by the task's ranges, and push."""
    adr: bool = False
    """Let the ranges grow from the calibrated point, boundary by boundary, as the policy copes."""
    nenv: int = 0
    """Simulations; 0: as suits the learner, or measured at the start."""
    threads: int = 0
    """Physics threads; 0: measured at the start."""
    learner: Literal["ppo", "sac"] | None = None
    """Algorithm, with its default settings; default: the task's own algorithm and settings."""
    option: tuple[str, ...] = ()
    """Settings of the learner, e.g. gamma=0.98 net.actor=[64,64]; `trueup/rl/settings.py` describes them."""
    symmetry: bool | None = None
    """Learn from mirrored samples too (PPO), where the task offers a mirror; default: as suits the task."""
    latent: int = 0
    """Size of a latent of the hidden factors that the policy sees (PPO, first phase of RMA); 0: none."""
    teacher: Path | None = None
    """Learn from the policy of this run instead of from rewards: a student that does not see the hidden factors."""
    student: Literal["latent", "action"] = "latent"
    """What the student learns: the teacher's latent (second phase of RMA) or its actions."""
    film_minutes: float = 5.0
    """Time between short films; 0: none."""
    save_seconds: float = 30.0
    """Time between checkpoints."""
    replay: Path | None = None
    """Do the step of a dump (OUT/nan) again, in which a number was not finite, instead of training."""


def run(verb: TrainVerb) -> int:
    """Train, show, say where everything is."""
    from rich.console import Console

    from trueup.core.errors import TrueupError
    from trueup.report.origins import print_origins
    from trueup.report.run import write_run_page
    from trueup.report.train import print_outcome, training_display
    from trueup.train.folder import RunFolder
    from trueup.train.train import assess_end, replay_dump, run_origins, train

    console = Console()
    if verb.replay is not None:
        found = replay_dump(verb.replay)
        console.print("\n".join(found) or "every number is finite this time")
        return 1 if found else 0
    out = verb.resume or verb.out
    if out is None or (verb.resume is None and verb.task is None):
        raise TrueupError("name a task and --out, or --resume RUN")
    cfg = _cfg(verb)
    if verb.params is not None and verb.resume is None:
        print_origins(run_origins(cfg), console)
    with training_display(out, console) as show:
        outcome = train(cfg, out, _budget(verb), resume=verb.resume is not None, show=show)
    assessed = None
    if outcome.reason != "interrupted":
        with console.status("assessing the policy without exploration ..."):
            assessed = assess_end(RunFolder(out))
    write_run_page(out)
    print_outcome(out, outcome, assessed, console)
    return 130 if outcome.reason == "interrupted" else 0


def _cfg(verb: TrainVerb) -> RunCfg:
    from trueup.rl.settings import PpoCfg
    from trueup.train.config import RunCfg

    return RunCfg(
        task=verb.task or "",
        seed=verb.seed,
        nenv=verb.nenv,
        threads=verb.threads,
        robot=verb.robot,
        params=None if verb.params is None else str(verb.params),
        posterior=verb.posterior,
        actuator=None if verb.actuator is None else str(verb.actuator),
        randomize=verb.randomize,
        adr=verb.adr,
        learner=PpoCfg() if verb.task is None else _learner(verb, verb.task),
        teacher=None if verb.teacher is None else str(verb.teacher),
    )


def _learner(verb: TrainVerb, task: str) -> LearnerCfg:
    """The task's settings or those of --learner, with the options given; a student's with --teacher."""
    from trueup.core.errors import TrueupError
    from trueup.rl.settings import DistillCfg
    from trueup.train.config import default_learner, with_options

    cfg = DistillCfg(kind=verb.student) if verb.teacher else default_learner(task, verb.learner)
    options: dict[str, object] = {}
    if verb.symmetry is not None:
        options["symmetry"] = verb.symmetry
    if verb.latent:
        options["net.latent"] = verb.latent
    for text in verb.option:
        name, equals, value = text.partition("=")
        if not equals:
            raise TrueupError(f"--option takes NAME=VALUE, found {text!r}")
        options[name] = _value(value)
    return with_options(cfg, options)


def _value(text: str) -> object:
    """A number, list or word as it is written in JSON."""
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text


def _budget(verb: TrainVerb) -> Budget:
    from trueup.train.config import Budget

    return Budget(
        minutes=verb.minutes,
        steps=verb.steps,
        target=verb.target,
        save_s=verb.save_seconds,
        film_minutes=verb.film_minutes,
    )
