"""What a run is: everything that decides its outcome, recorded beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from trueup.core.errors import TrueupError
from trueup.rl.distill import DistillCfg
from trueup.rl.settings import PpoCfg
from trueup.tasks.load import load_task


@dataclass(frozen=True, kw_only=True)
class RunCfg:
    """Decides, with the code, every parameter that training produces; a resumed run uses what was recorded.

    nenv, threads  0: measured at the start, then recorded; threads do not change results
    robot          name or folder of a robot to train on in place of the task's own; the same joints
    params         params.json of a calibration: everything fitted is drawn from its posterior
    posterior      False: the calibration's estimate in every simulation instead of draws
    actuator       folder of a learned actuator that drives the joints
    randomize      draw the task's ranges and push; `adr`: let ranges grow with success
    teacher        folder of the run whose policy teaches, with `distill`
    """

    task: str
    seed: int = 0
    nenv: int = 0
    threads: int = 0
    robot: str | None = None
    params: str | None = None
    posterior: bool = True
    actuator: str | None = None
    randomize: bool = True
    adr: bool = False
    ppo: PpoCfg = field(default_factory=PpoCfg)
    teacher: str | None = None
    distill: DistillCfg | None = None


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When to stop and how often to do what does not change the outcome; times are of the whole run, resumed or not.

    minutes, steps   whichever comes first; steps are control steps of all simulations together
    target           stop when an assessment reaches it (see `assess`), unless `past_target`: then only record it
    save_s           between checkpoints
    film_minutes     between films; 0: none
    assess_minutes   between assessments, with a target only
    """

    minutes: float | None = None
    steps: int | None = None
    target: float | None = None
    past_target: bool = False
    save_s: float = 30.0
    film_minutes: float = 0.0
    assess_minutes: float = 1.0


def default_ppo(task: str) -> PpoCfg:
    """The settings that the task itself names."""
    return load_task(task).learner


def write_config(cfg: RunCfg) -> str:
    """As JSON text."""
    return msgspec.json.format(msgspec.json.encode(cfg), indent=1).decode() + "\n"


def read_config(path: Path) -> RunCfg:
    """Read what `write_config` wrote."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunCfg)
    except OSError:
        raise TrueupError("no run here: config.json is missing", file=path.parent) from None
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise TrueupError(f"is not a run's config: {error}", file=path) from None
