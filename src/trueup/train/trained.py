"""TrainedRun: the result of `tu.train`, to be assessed, filmed and exported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trueup.policy.mlp import MlpPolicy, load_policy
from trueup.train.folder import RunFolder
from trueup.train.play.assess import Assessment
from trueup.train.play.play import open_run
from trueup.train.play.show import film_policy
from trueup.train.train import assess_run
from trueup.train.trainer import Outcome


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """Where a run is and how it ended."""

    path: Path
    outcome: Outcome

    def metrics(self) -> list[dict[str, float]]:
        """One record an iteration."""
        return RunFolder(self.path).read_metrics()

    def assess(self, *, episodes: int = 100, randomize: bool = False) -> Assessment:
        """Falls, error and score over whole episodes, without exploration."""
        return assess_run(RunFolder(self.path), episodes=episodes, randomize=randomize)

    def film(self, path: str | Path, *, seconds: float = 10.0) -> Path:
        """Film the policy (.mp4 or .gif)."""
        return film_policy(*open_run(self.path), Path(path), seconds=seconds)

    def policy(self) -> MlpPolicy:
        """The exported policy: what a robot needs."""
        return load_policy(RunFolder(self.path).policy)
