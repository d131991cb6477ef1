"""Config of `trueup evaluate`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from trueup.core.files import OutFolder


@dataclass(frozen=True)
class EvaluateVerb:
    """Evaluate policies in scenarios: success rates with intervals, errors, energy, torque, red flags.

    In: one bundle (trueup export, trueup policy import), or several to compare. Out: a table, and in a folder a page
    (index.html), score.json of each policy, and film and log of the worst trial of each scenario. Stopped with Ctrl-C,
    it keeps what is done; the same command goes on from there.
    """

    bundles: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="BUNDLE")]
    """Folders of bundles."""
    _: KW_ONLY
    out: OutFolder | None = None  # Folder for the page, scores, films and logs; default: BUNDLE.evaluated.
    scenarios: str | None = (
        None  # TOML file of a suite of your own, or the name of a shipped one; default: by the task.
    )
    only: tuple[str, ...] = ()  # Names of the scenarios to run; default: all.
    trials: int = 100  # Of each scenario.
    engine: Literal["mujoco", "sapien"] = "mujoco"  # Physics: MuJoCo, or PhysX 5 (SAPIEN).
    params: Path | None = None  # Folder or params.json of a calibration: every trial draws from its posterior.
    sensitivity: bool = False  # Also find how far each parameter can change before the policy fails.
    films: bool = True  # Film the worst trial of each scenario.
    task: str | None = None  # Task whose world it is tested in; default: the one that the policy names.
    seed: int = 0  # Of everything random.
    threads: int = 0  # Physics threads; 0 takes every core.
    json: bool = False  # Print one JSON object instead of tables.

    @property
    def folder(self) -> Path:
        """Where results go: beside the first bundle, unless told otherwise."""
        if self.out is not None:
            return self.out
        stems = "-".join(bundle.name.removesuffix(".bundle") for bundle in self.bundles)
        return self.bundles[0].parent / (f"{stems}.evaluated" if len(self.bundles) > 1 else f"{stems}.bundle.evaluated")
