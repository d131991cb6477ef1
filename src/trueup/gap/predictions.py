"""Scores the predictions of `verify`: every run of a workspace on the robot against its certificate.

A run belongs to the certificate of the bundle that it ran (by hash). The intervals of a prediction are those of one
robot, as the mean over many episodes; so a robot is scored by the mean of its runs, with single runs shown beside it.
Falls are scored run by run with the probability that was predicted: Brier's score, 0 is perfect, 0.25 is a coin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.files import read_log
from trueup.gap.symptoms.measures import Measures, measure_all
from trueup.gap.symptoms.run import of_rows
from trueup.hardware.policy_rows import FILE as ROWS
from trueup.hardware.policy_rows import RecordedRows, read_rows
from trueup.policy.bundle.certificate import Certificate, read_certificate
from trueup.robot.load import Robot, load_robot

_RUNG, _FLAT = "full", "commands"  # the last rung; the scenario that predictions are of


class PredictedQuantity(msgspec.Struct, frozen=True, kw_only=True):
    """A predicted interval and the measured value of a quantity; None for those not known."""

    name: str
    unit: str
    predicted: float
    low: float
    high: float
    measured: float | None

    @property
    def inside(self) -> bool | None:
        return None if self.measured is None else self.low <= self.measured <= self.high


class ScoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: predicted `fall_chance` and outcome; errors beside the interval of the robot's mean."""

    name: str
    seconds: float
    command: str
    fall_chance: float
    fell: bool
    brier: float
    quantities: tuple[PredictedQuantity, ...]


class ScoredRobot(msgspec.Struct, frozen=True, kw_only=True):
    """One policy on one robot: its runs, and their means against the prediction's intervals."""

    name: str
    policy: str
    robot: str
    runs: tuple[ScoredRun, ...]
    quantities: tuple[PredictedQuantity, ...]


class Predictions(msgspec.Struct, frozen=True, kw_only=True):
    """Scored predictions of a workspace.

    inside, judged   quantities of robots that lie within their 95 % intervals, of how many
    brier            mean over the runs; `brier_base`: of always predicting the share that fell, None below two runs
    notes            runs that could not be scored, and why
    """

    robots: tuple[ScoredRobot, ...]
    inside: int
    judged: int
    runs: int
    falls: int
    expected_falls: float
    brier: float | None
    brier_base: float | None
    notes: tuple[str, ...] = ()


def predictions(workspace: str | Path, robot: str | Robot | None = None) -> Predictions:
    """Score the predictions of `verify` with all runs of the last rung in a workspace or any folder.

    robot   in place of the one that recordings name
    """
    folder = Path(workspace)
    if not folder.is_dir():
        raise TrueupError("is not a folder: a workspace of `trueup loop` is asked for", file=folder)
    certificates = _certificates(folder)
    found: dict[tuple[str, str, str], list[tuple[str, RecordedRows]]] = {}
    notes: dict[str, None] = {}
    for path in sorted(folder.rglob(ROWS)):
        rows, name = read_rows(path), str(path.parent.relative_to(folder))
        if rows.header.meta.get("rung") != _RUNG:
            continue
        certificate = certificates.get(rows.header.bundle_hash)
        if certificate is None or certificate.prediction is None:
            why = "no certificate of its bundle" if certificate is None else "its certificate predicts nothing"
            notes[f"{name}: {why}: `trueup verify`"] = None
            continue
        key = (str(path.parent.parent.relative_to(folder)), rows.header.bundle_hash, rows.header.robot)
        found.setdefault(key, []).append((name, rows))
    scored = [_robot(folder, certificates[key[1]], key, runs, robot) for key, runs in found.items()]
    return _together(tuple(scored), tuple(notes))


def _certificates(folder: Path) -> dict[str, Certificate]:
    """Certificates by the hash of their bundles; of several the one with most worlds."""
    out: dict[str, Certificate] = {}
    for path in sorted(folder.rglob("*.certificate.json")):
        one = read_certificate(path)
        known = out.get(one.bundle)
        if known is None or _worlds(one) > _worlds(known):
            out[one.bundle] = one
    return out


def _worlds(certificate: Certificate) -> int:
    return 0 if certificate.prediction is None else certificate.prediction.worlds


def _robot(
    folder: Path, certificate: Certificate, key: tuple[str, str, str], runs: list[tuple[str, RecordedRows]],
    robot: str | Robot | None,
) -> ScoredRobot:  # fmt: skip
    known = robot if isinstance(robot, Robot) else load_robot(robot or key[2])
    opened = []
    for name, rows in runs:
        log = folder / name / "robot.mcap"
        opened.append(of_rows(rows, known, name=name, source=read_log(log) if log.is_file() else None))
    measured = measure_all(opened, known)
    power = _power(folder, certificate.bundle)
    scored = []
    for run, found in zip(opened, measured, strict=True):
        asked = "" if run.command is None else " ".join(f"{x:.2f}" for x in np.median(run.command, axis=0) + 0.0)
        scored.append(_run(certificate, run.name, run.seconds, asked, found, power))
    stood = 1.0 - float(np.mean([one.fell for one in scored]))
    prediction = certificate.prediction
    assert prediction is not None
    success = PredictedQuantity(name="success", unit="1", predicted=prediction.success, low=prediction.success_low,
                       high=prediction.success_high, measured=stood)  # fmt: skip
    means = {name: _mean([one.get(name) for one in measured]) for name in ("velocity_error", "power")}
    return ScoredRobot(
        name=key[0], policy=certificate.bundle[:12], robot=known.spec.name, runs=tuple(scored),
        quantities=(success, *_quantities(certificate, means, power)),
    )  # fmt: skip


def _run(
    certificate: Certificate, name: str, seconds: float, asked: str, found: Measures, power: dict[str, float] | None
) -> ScoredRun:
    assert certificate.prediction is not None
    chance, fell = 1.0 - certificate.prediction.success, bool(np.isfinite(found.get("fell_s", np.nan)))
    return ScoredRun(
        name=name, seconds=seconds, command=asked, fall_chance=chance, fell=fell, brier=(chance - fell) ** 2,
        quantities=_quantities(certificate, {key: _known(value) for key, value in found.items()}, power),
    )  # fmt: skip


def _quantities(
    certificate: Certificate, found: dict[str, float | None], power: dict[str, float] | None
) -> tuple[PredictedQuantity, ...]:
    """Predicted velocity error, and power where the gate's score has it."""
    told = certificate.prediction
    assert told is not None
    out = []
    if told.metric == "velocity_error":
        out.append(PredictedQuantity(name="velocity error", unit=told.unit, predicted=told.error, low=told.error_low,
                                     high=told.error_high, measured=found.get("velocity_error")))  # fmt: skip
    if power is not None:
        out.append(PredictedQuantity(name="power", unit="W", predicted=power["median"], low=power["low"],
                                     high=power["high"], measured=found.get("power")))  # fmt: skip
    return tuple(out)


def _power(folder: Path, bundle: str) -> dict[str, float] | None:
    """Power over the whole range of commands in the gate's score: median, and 80 % of the trials."""
    for score in _scores(folder):
        if score.get("bundle_hash") != bundle:
            continue
        for one in score.get("results", []):
            if one.get("name") == _FLAT and "power" in one.get("metrics", {}):
                found: dict[str, float] = one["metrics"]["power"]
                return found
    return None


def _scores(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.rglob("score.json")):
        try:
            found = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            yield found


def _together(robots: tuple[ScoredRobot, ...], notes: tuple[str, ...]) -> Predictions:
    judged = [one.inside for robot in robots for one in robot.quantities if one.inside is not None]
    runs = [run for robot in robots for run in robot.runs]
    share = float(np.mean([run.fell for run in runs])) if runs else 0.0
    return Predictions(
        robots=robots, inside=sum(judged), judged=len(judged), runs=len(runs), falls=sum(run.fell for run in runs),
        expected_falls=float(sum(run.fall_chance for run in runs)),
        brier=float(np.mean([run.brier for run in runs])) if runs else None,
        brier_base=share * (1.0 - share) if len(runs) > 1 else None, notes=notes,
    )  # fmt: skip


def _known(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in map(_known, values) if value is not None]
    return float(np.mean(known)) if known else None
