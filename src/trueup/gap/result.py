"""GapResult: ranked causes with evidence, horizons and distances, as data that is read and written as JSON."""

from __future__ import annotations

from pathlib import Path

from trueup.core.documents import Strict, read_json, write_json
from trueup.world.fitted.refit import REFIT_FILE, RefitRequest, write_refit

FILE, SCHEMA = "result.json", 1


class Cause(Strict, frozen=True, kw_only=True):
    """One explanation of the mismatch.

    joints      that it acts on; () for the whole robot
    size, unit  of the change that explains most on the estimating part of the log
    explained   share of the squared mismatch that disappears on held-out windows; `interval` its 90 % interval
    confidence  share of bootstrap draws over held-out windows in which no other cause explains more
    tied        whether it explains as much as the first, within what the windows can tell
    """

    name: str
    joints: tuple[str, ...]
    size: float
    unit: str
    explained: float
    interval: tuple[float, float]
    confidence: float
    tied: bool
    evidence: str
    command: str
    excitation: str


class CausePair(Strict, frozen=True, kw_only=True):
    """The first cause together with a second one, and the share both explain on held-out windows."""

    names: tuple[str, str]
    explained: float
    adds: float


class Horizon(Strict, frozen=True, kw_only=True):
    """Root mean square mismatch of one signal after some time of simulation from a measured state."""

    signal: str
    unit: str
    horizon: str
    error: float
    moved: float


class GapResult(Strict, frozen=True, kw_only=True):
    """Result of a diagnosis.

    causes         significant ones beyond tolerance, the best first; empty when there are none
    tried          every hypothesis that was tested, name -> share explained on held-out windows
    horizons       one step, 0.1 s, 1 s and whole log, per signal
    distances      of distributions, for logs whose commands cannot be replayed
    disagreement   of several recordings, in words: a change that mends one and spoils another; empty: none does
    """

    schema: int = SCHEMA
    robot: str
    base: str
    logs: tuple[str, ...]
    hashes: tuple[str, ...]
    params: str | None
    windows: int
    seconds: float
    nothing_wrong: bool
    causes: tuple[Cause, ...]
    pairs: tuple[CausePair, ...]
    tried: dict[str, float]
    horizons: tuple[Horizon, ...]
    distances: dict[str, float]
    notes: tuple[str, ...]
    disagreement: str = ""
    refit: RefitRequest | None = None

    def write(self, folder: str | Path) -> Path:
        """Write FOLDER/result.json, and refit.json where something can be fitted."""
        path = write_json(Path(folder) / FILE, self)
        if self.refit is not None:
            write_refit(self.refit, Path(folder) / REFIT_FILE)
        else:
            (Path(folder) / REFIT_FILE).unlink(missing_ok=True)
        return path


def read(path: str | Path) -> GapResult:
    """Read result.json, or the folder that holds it."""
    return read_json(path, GapResult, "diagnosis", name=FILE, schema=SCHEMA)
