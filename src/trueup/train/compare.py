"""`trueup compare`: runs read side by side, the settings in which they differ, and intervals of their assessments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from trueup.core.errors import TrueupError
from trueup.core.files import OutFile
from trueup.tasks.evaluation.statistics import Z95, wilson

if TYPE_CHECKING:
    from trueup.train.config import RunCfg


@dataclass(frozen=True)
class CompareVerb:
    """Show runs of training side by side.

    In: folders of two or more runs. Out: a page with learning curves over steps and time, the settings that differ,
    final assessments with 95 % intervals, reward terms and the newest films.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]  # Folders of the runs.
    out: OutFile  # The page to write (.html).


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """What a run has recorded; `assessed` is its last assessment, None without one."""

    name: str
    path: Path
    cfg: RunCfg
    rows: list[dict[str, float]]
    assessed: Mapping[str, Any] | None
    film: Path | None

    def error(self) -> tuple[float, float | None] | None:
        """The goal's error and the half width of its 95 % interval over episodes."""
        if self.assessed is None or self.assessed.get("error") is None:
            return None
        spread = self.assessed.get("error_se")
        return float(self.assessed["error"]), None if spread is None else Z95 * float(spread)

    def falls(self) -> tuple[int, int, tuple[float, float]] | None:
        """Falls, episodes and the 95 % interval of their share; None where the number of episodes is unknown."""
        if self.assessed is None or not self.assessed.get("episodes"):
            return None
        falls, episodes = int(self.assessed["falls"]), int(self.assessed["episodes"])
        rate = wilson(falls, episodes)
        return falls, episodes, (rate.low, rate.high)


def read_runs(paths: Sequence[str | Path]) -> list[ComparedRun]:
    """Read two or more runs; folders of the same name are told apart by the folder above."""
    from trueup.train.folder import RunFolder

    folders = [RunFolder(path) for path in paths]
    if len(folders) < 2:
        raise TrueupError(f"a comparison takes two or more runs, found {len(folders)}")
    names = [folder.path.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder.path) for folder in folders]
    if len(set(names)) < len(names):
        raise TrueupError("a run is named twice: each is compared once")
    out = []
    for name, folder in zip(names, folders, strict=True):
        films = sorted(folder.films.glob("*.mp4"))
        out.append(
            ComparedRun(
                name=name,
                path=folder.path,
                cfg=folder.config(),
                rows=folder.read_metrics(),
                assessed=next(reversed(folder.read_assessments()), None),
                film=films[-1] if films else None,
            )
        )
    return out


def differences(runs: Sequence[ComparedRun]) -> dict[str, list[str]]:
    """Settings by their dotted names whose values are not the same in all runs; absent ones are a dash."""
    flat = [_flat(run.cfg) for run in runs]
    names = dict.fromkeys(name for settings in flat for name in settings)
    values = {name: [settings.get(name, "–") for settings in flat] for name in names}
    return {name: found for name, found in values.items() if len(set(found)) > 1}


def _flat(cfg: RunCfg) -> dict[str, str]:
    from trueup.train.config import write_config

    def walk(value: object, name: str) -> dict[str, str]:
        if not isinstance(value, dict):
            return {name: json.dumps(value)}
        parts = [walk(inner, f"{name}.{key}" if name else key) for key, inner in value.items()]
        return {key: text for part in parts for key, text in part.items()}

    return walk(json.loads(write_config(cfg)), "")
