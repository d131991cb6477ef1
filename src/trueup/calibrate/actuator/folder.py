"""The ladder on disk: DIR/ladder.json, and a folder for each finished rung.

DIR/ladder.json            recommendation, table, split, provenance
DIR/rungs/NAME/rung.json   scores and cost of a rung, and the key of the problem it belongs to
DIR/rungs/NAME/params.json, actuator.json, actuator.safetensors   what a simulator needs
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.recommend import Recommendation, StepCheck
from trueup.calibrate.actuator.rungs import Rung, rung_named
from trueup.calibrate.actuator.score import Scores
from trueup.calibrate.actuator.trials import LongRun, Tracked
from trueup.core.arrays import sha256_of
from trueup.core.documents import read_json, write_json
from trueup.data.log import Log
from trueup.models.actuator_file import JSON_FILE, load_actuator, save_actuator
from trueup.world.fitted.calibration import PARAMS_FILE, read_calibration, write_calibration

SCHEMA = 1
LADDER_FILE, RUNG_FILE, RUNGS_FOLDER = "ladder.json", "rung.json", "rungs"
Status = Literal["done", "not excited", "not supported"]
T = TypeVar("T")


class RungResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Result of a rung.

    status   not supported: nothing was fitted; not excited: fitted, but the data do not show what it adds
    reason   of a status other than done
    count    numbers fitted
    fit_s, cpu_s   wall and processor time of the fit
    """

    schema: int = SCHEMA
    key: str
    rung: str
    status: Status
    reason: str = ""
    count: int = 0
    fit_s: float = 0.0
    cpu_s: float = 0.0
    scores: Scores | None = None
    long: list[LongRun] = []
    closed_loop: Tracked | None = None
    notes: list[str] = []

    @property
    def bounded(self) -> bool:
        return all(run.bounded for run in self.long)


class LadderFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of ladder.json; `left_out`: a sentence on rungs that the quick form did not compare."""

    schema: int = SCHEMA
    robot: str
    split: str
    common: str
    recommendation: Recommendation
    rungs: list[RungResult]
    finer: StepCheck | None = None
    left_out: str = ""
    notes: list[str]
    provenance: dict[str, object]


class LadderFolder:
    """Reads and writes rungs; `key` is that of the problem, other problems' rungs are not seen."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def rung(self, name: str) -> Path:
        return self.path / RUNGS_FOLDER / name

    def load(self, rung: Rung, key: str) -> tuple[Actuator, RungResult] | None:
        """An earlier result of a rung under this key."""
        file = self.rung(rung.name) / RUNG_FILE
        if not file.exists():
            return None
        result = read_json(file, RungResult, "rung of a ladder")
        if result.key != key or result.status == "not supported":
            return None
        return read_actuator(self.rung(rung.name)), result

    def save(self, actuator: Actuator | None, result: RungResult) -> None:
        """Write the model first, then the result that marks it complete."""
        folder = self.rung(result.rung)
        if actuator is not None and actuator.params is not None:
            write_calibration(actuator.params, folder)
        if actuator is not None and actuator.net is not None:
            save_actuator(actuator.net, folder)
        write_json(folder / RUNG_FILE, result)

    def finer(self, key: str) -> StepCheck | None:
        """An earlier check with half the physics step under this key."""
        file = self.path / LADDER_FILE
        found = read_ladder(file).finer if file.exists() else None
        return found if found is not None and found.key == key else None

    def finish(self, ladder: LadderFile) -> Path:
        return write_json(self.path / LADDER_FILE, ladder)


def read_actuator(folder: str | Path) -> Actuator:
    """The actuator model in a rung's folder, DIR/rungs/NAME."""
    folder = Path(folder)
    return Actuator(
        rung=rung_named(folder.name),
        params=read_calibration(folder) if (folder / PARAMS_FILE).exists() else None,
        net=load_actuator(folder) if (folder / JSON_FILE).exists() else None,
    )


def read_ladder(path: str | Path) -> LadderFile:
    """Read ladder.json, or the folder that holds it."""
    return read_json(path, LadderFile, "ladder", name=LADDER_FILE)


def rung_key(rung: Rung, train: Sequence[Log], held: Sequence[Log], settings: str) -> str:
    """A hash of the logs that a rung is fitted to and scored on, and of the settings."""
    return sha256_of((f"{rung} {settings}", *(log.sha256 for log in (*train, *held))))
