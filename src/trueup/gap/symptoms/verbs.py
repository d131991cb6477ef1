"""Config of `trueup symptoms`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from trueup.core.files import OutFolder


@dataclass(frozen=True)
class SymptomsVerb:
    """Find symptoms of a policy on the robot: measured, with usual cause and a changed task file for training.

    In: recordings of runs (folders of `trueup deploy`, or logs), several of the same command where possible. Out: a
    table, and in a folder symptoms.json and mended.py, a task for `trueup train`. The same policy is simulated with the
    same commands on robots drawn as in training: a value beyond all of them is a symptom. Exit code 1 if there are any.
    """

    logs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="LOG")]
    """Folders of runs, policy.rows, or logs."""
    _: KW_ONLY
    robot: str | None = None  # Name or folder; default: as the recording says.
    out: OutFolder | None = None  # Folder for symptoms.json and the task file; default: LOG.symptoms.
    bundle: Path | None = None  # The policy that ran; default: the one that the recording names.
    task: str | None = None  # Task that it was trained for; default: the one that the policy names.
    params: Path | None = None  # Calibration that the simulated robots are made with.
    command: tuple[float, ...] | None = None
    """Command held throughout, for logs without one: forward, sideways, turn."""
    robots: int = 32  # Simulated robots; 0: bounds of the robot's limits alone.
    seed: int = 0  # Of everything random.
    threads: int = 0  # Physics threads; 0 takes every core.
    json: bool = False  # Print one JSON object instead of a table.

    @property
    def folder(self) -> Path:
        """Folder of the results; default: beside the first recording."""
        first = self.logs[0] if self.logs else Path("log")
        return self.out if self.out is not None else first.with_name(f"{first.stem}.symptoms")
