"""RunFolder: the files of a run, and Scalars: its metrics, appended in every iteration."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trueup.core.checkpoint import Checkpoint, Checkpoints, read_checkpoint, write_checkpoint
from trueup.core.documents import read_json_lines
from trueup.core.errors import TrueupError
from trueup.core.files import make_folder, write_atomic, writing
from trueup.policy.net import NetWiring, PolicyNet, read_net
from trueup.rl.env import part
from trueup.tasks.load import load_task
from trueup.train.config import RunCfg, read_config, write_config

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

POLICY = "policy"  # in checkpoints: the fact that declares the policy's kind, and the prefix of its arrays
_SNAPSHOT_EVERY, _MOST_SNAPSHOTS = 25, 32


class RunFolder:
    """runs/NAME: config.json, checkpoints/, metrics.jsonl, tensorboard/, films/, policy/.

    snapshots/  policies along the way to choose from (`trueup verify --select`), by iteration: one every 25 iterations,
                thinned to every 50, 100, ... so that at most 32 are kept
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self.snapshots = Checkpoints(self.path / "snapshots")
        self.metrics = self.path / "metrics.jsonl"
        self.films = self.path / "films"
        self.policy = self.path / "policy"

    def create(self, cfg: RunCfg) -> None:
        """Begin a run; refuses to write over another."""
        if (self.path / "config.json").exists():
            raise TrueupError(
                "there is a run here already; continue it with --resume or choose another --out", file=self.path
            )
        write_atomic(self.path / "config.json", write_config(cfg))

    def config(self) -> RunCfg:
        return read_config(self.path / "config.json")

    def newest(self) -> Checkpoint:
        """The newest whole checkpoint."""
        found = self.checkpoints.newest()
        if found is None:
            self.config()  # a folder that is no run is refused as such
            raise TrueupError("this run has no checkpoint yet: it was stopped before its first", file=self.path)
        return found

    def trained_s(self) -> float:
        """Simulated time that its policy was trained for, by this run and by those that it went on from, s."""
        cfg, steps = self.config(), int(self.newest().facts["steps"])
        return cfg.trained_s + steps / (cfg.nenv * load_task(cfg.task, cfg.robot).rates.control_hz)

    def newest_policy(self) -> PolicyNet:
        """The policy of the newest whole checkpoint."""
        return self.policy_in(self.newest())

    def policy_at(self, iteration: int) -> PolicyNet:
        """The policy of a snapshot."""
        return self.policy_in(read_checkpoint(self.snapshots.root / f"{iteration:08d}"))

    def policy_in(self, found: Checkpoint) -> PolicyNet:
        """The policy of a checkpoint."""
        if POLICY not in found.facts:
            raise TrueupError("its checkpoint is of an earlier version of trueup: train anew", file=self.path)
        try:
            return read_net(msgspec.convert(found.facts[POLICY], NetWiring), part(found.arrays, f"{POLICY}/"))
        except (msgspec.ValidationError, KeyError, TypeError, IndexError, ValueError) as error:
            raise TrueupError(f"its checkpoint holds no policy: {error!r}", file=self.path) from None

    def snapshot_iterations(self) -> list[int]:
        """Iterations of the snapshots, oldest first."""
        return sorted(int(folder.name) for folder in self.snapshots.folders())

    def keep_snapshot(self, iteration: int, policy: Callable[[], Checkpoint]) -> None:
        """Keep the policy of this iteration, if it is one of those that are kept, and thin out older ones."""
        every = _SNAPSHOT_EVERY
        while iteration > every * _MOST_SNAPSHOTS:
            every *= 2
        if iteration % every:
            return
        write_checkpoint(self.snapshots.root / f"{iteration:08d}", policy())
        for folder in self.snapshots.folders():
            if int(folder.name) % every:
                shutil.rmtree(folder, ignore_errors=True)

    def read_metrics(self) -> list[dict[str, float]]:
        """One record an iteration; a torn last line is left out."""
        return read_json_lines(self.metrics)

    def read_assessments(self) -> list[dict[str, Any]]:
        """One record an assessment."""
        return read_json_lines(self.path / "assessments.jsonl")

    def drop_metrics_after(self, iteration: int) -> None:
        """Remove the records of iterations that a resumed run will repeat."""
        rows = [row for row in self.read_metrics() if row["iteration"] <= iteration]
        if self.metrics.exists():
            write_atomic(self.metrics, "".join(json.dumps(row) + "\n" for row in rows))


class Scalars:
    """Appends an iteration's numbers to metrics.jsonl and to TensorBoard."""

    def __init__(self, folder: RunFolder, iteration: int) -> None:
        folder.drop_metrics_after(iteration)
        make_folder(folder.path)
        with writing(folder.metrics):
            self._file = folder.metrics.open("a", buffering=1)
        self._board = _board(folder.path / "tensorboard", iteration)

    def add(self, record: dict[str, float]) -> None:
        """Write one record; it holds `iteration` and `steps`."""
        self._file.write(json.dumps(record) + "\n")
        if self._board is not None:
            for name, value in record.items():
                self._board.add_scalar(name, value, int(record["steps"]))

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def _board(path: Path, iteration: int) -> SummaryWriter | None:
    """A writer for TensorBoard, or None where it is not installed; iterations that a resumed run repeats are purged."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(path), purge_step=iteration + 1 if iteration else None)
