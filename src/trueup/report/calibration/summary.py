"""A calibration in short: its verdict in a paragraph, each parameter's word, and like joints in one row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueup.calibrate.parameters import joint_kind
from trueup.report.page import Status
from trueup.world.fitted.calibration import Calibration, Estimate, Predictive

STATUS: dict[str, Status] = {"identified": "good", "bounded": "good", "weak": "warn", "not visible": "bad"}
STRUCTURED = (
    "What is left over is not noise: the model lacks something (backlash, hysteresis, load-dependent friction, a wrong "
    "mass). Intervals hold for this model only. Try a richer set of parameters, or a learned actuator."
)
_NEAR = 1e-3  # of the box: an end this near is its bound
_MANY = 0.5  # of the parameters: more that are loosely known call for another recording
_PARTNER = re.compile(r"^cannot be told from [^;]*; record ")
_CLAUSE = re.compile(r"(?<=\S)(: |; |\. | \()")
_WORDS = 4  # a clause of a note that says something has at least so many


@dataclass(frozen=True, kw_only=True)
class FitVerdict:
    """Summary of a fit: doubts, improvement, identified parameters, cautions, next command."""

    status: Status
    headline: str
    known: str
    warnings: tuple[str, ...]
    command: str

    @property
    def paragraph(self) -> str:
        """All but the command."""
        minded = f" Mind: {'; '.join(self.warnings)}." if self.warnings else ""
        return f"{self.headline} {self.known}{minded}"


def fit_verdict(result: Calibration, logs: str = "LOG...", out: str = "DIR", robot: str = "") -> FitVerdict:
    """The verdict; `logs`, `out` and `robot` (default: its name) are what the next command names."""
    words: list[str] = [estimate.verdict for estimate in result.estimates]
    counted = ", ".join(f"{words.count(word)} {word}" for word in STATUS)
    warnings = []
    if result.effort.interrupted or not result.effort.converged:
        warnings.append("the fit was stopped early" if result.effort.interrupted else "the fit has not converged")
    if result.misfit.structured:
        warnings.append("more is left over than noise, the model lacks something")
    if result.predictive is not None and not result.predictive.covered:
        warnings.append("the error is not within what the posterior predicts")
    status, headline = _headline(result)
    if result.alarms:
        headline = f"DOUBTFUL: {'; '.join(result.alarms)}. {headline}"
    return FitVerdict(
        status="bad" if result.alarms else "warn" if status == "good" and warnings else status,
        headline=headline,
        known=f"Of {len(words)} parameters {counted}.",
        warnings=tuple(warnings),
        command=_next_command(result, logs, out, robot or result.robot),
    )


def _headline(result: Calibration) -> tuple[Status, str]:
    """Better, as good or worse on held-out data; within the scatter of its error is neither."""
    held = result.holdout_nominal is not None
    nominal = (result.holdout_nominal or result.fit_nominal).open_loop_mean
    score = result.holdout_calibrated or result.fit_calibrated
    calibrated, (low, high) = score.open_loop_mean, score.spread
    data = "held-out data" if held else "the data it was fitted to (nothing is held out)"
    numbers = f"{1e3 * calibrated:.2f} instead of {1e3 * nominal:.2f} mrad"
    if nominal > high:
        times = f"{nominal / calibrated:.1f} times better than the nominal one" if calibrated else "exactly"
        return "good" if held else "warn", f"The calibrated model predicts {data} {times}: {numbers}."
    if nominal < low:
        worse = f"{calibrated / nominal:.1f} times WORSE" if nominal else "WORSE"
        return "bad", f"The calibrated model predicts {data} {worse}: {numbers}. Do not use it."
    return "warn", f"The calibrated model predicts {data} no better than the nominal one: {numbers}."


def _next_command(result: Calibration, logs: str, out: str, robot: str) -> str:
    """The most useful next command."""
    weak = sum(e.verdict in ("weak", "not visible") for e in result.estimates)
    if result.effort.interrupted:
        return f"trueup calibrate {logs} --robot {robot} --out {out} --resume"
    if result.alarms:
        return f"trueup data check {logs} --robot {robot}"
    if result.misfit.structured:
        return f"trueup calibrate actuator {logs} --robot {robot} --out ladder/"
    if weak > _MANY * len(result.estimates):
        return f"trueup record {robot} --excitation active --for {out} --out next.mcap"
    return f"trueup train TASK --params {out} --minutes 15 --out runs/first"


# --- of parameters ---
def word_shown(estimate: Estimate) -> str:
    """The verdict with what bounds the parameter: "at most 0.35"."""
    if estimate.verdict != "bounded":
        return estimate.verdict
    entry, (low, high) = estimate.parameter, estimate.interval
    x, (first, last), (bottom, top) = entry.to_x(estimate.value), map(entry.to_x, (low, high)), entry.x_bounds
    near = _NEAR * (top - bottom)
    at_most = first - bottom < near or (top - last >= near and x - first > last - x)
    return f"at most {high:.3g}" if at_most else f"at least {low:.3g}"


def excluded_shown(estimate: Estimate) -> str:
    """By how much the cost would rise at the nominal value, if the data exclude it: "+8 %", "x 14"."""
    rise = estimate.nominal_cost
    if not estimate.nominal_excluded or rise is None:
        return ""
    return f"+{100 * rise:.2g} %" if rise < 1.0 else f"x {1.0 + rise:.2g}"


def predictive_text(check: Predictive) -> str:
    """The posterior predictive check in a sentence."""
    within = "within" if check.covered else "NOT within"
    return (
        f"draws from the posterior replay held-out data with {check.median_ratio:.2f} times the estimate's error "
        f"(median; 95 % within {check.q95_ratio:.2f}); that error, {1e3 * check.estimate_error:.2f} mrad, is {within} "
        f"what was to be expected ({1e3 * check.spread[0]:.2f} to {1e3 * check.spread[1]:.2f})"
    )


# --- what to record, what to know ---
def next_recording(result: Calibration) -> list[tuple[str, str]]:
    """(parameters, advice): each piece of advice once, with the parameters it is for."""
    pieces: dict[str, list[str]] = {}
    for estimate in result.estimates:
        if estimate.advice:
            pieces.setdefault(estimate.advice, []).append(estimate.parameter.label)
    return [
        (f"{', '.join(labels[:3])}{f' and {len(labels) - 3} more' if len(labels) > 3 else ''}", advice)
        for advice, labels in pieces.items()
    ]


def motions_to_record(result: Calibration) -> list[tuple[str, str]]:
    """(parameters, motion): each motion once, the one for most parameters first; parameters by name with counts."""
    pieces: dict[str, list[str]] = {}
    for estimate in result.estimates:
        if estimate.advice:
            motion = _PARTNER.sub("", estimate.advice).removeprefix("record ")
            pieces.setdefault(motion, []).append(estimate.parameter.name)
    ordered = sorted(pieces.items(), key=lambda piece: -len(piece[1]))
    return [(", ".join(_counted(names)), motion) for motion, names in ordered]


def _counted(names: Sequence[str]) -> list[str]:
    """friction (12), delay."""
    return [f"{name} ({names.count(name)})" if names.count(name) > 1 else name for name in dict.fromkeys(names)]


def short_notes(notes: Sequence[str]) -> list[str]:
    """The first clause of each note that says something, each once; the page and --verbose have them whole."""
    return list(dict.fromkeys(_first_clause(note) for note in notes))


def _first_clause(note: str) -> str:
    for end in _CLAUSE.finditer(note):
        if len(note[: end.start()].split()) >= _WORDS:
            return note[: end.start()]
    return note


@dataclass(frozen=True, kw_only=True)
class Group:
    """Estimates of one parameter of like joints.

    name      parameter and kind of joint, with the unit
    interval  from the lowest to the highest end of all their 95 % intervals
    verdict   the word of one, or how many have which
    excluded  how many of them have a nominal value that the data exclude
    """

    name: str
    estimates: tuple[Estimate, ...]

    @property
    def median(self) -> float:
        return float(np.median([estimate.value for estimate in self.estimates]))

    @property
    def interval(self) -> tuple[float, float]:
        return min(estimate.interval[0] for estimate in self.estimates), max(
            estimate.interval[1] for estimate in self.estimates
        )

    @property
    def nominal(self) -> float | None:
        known = [estimate.nominal for estimate in self.estimates if estimate.nominal is not None]
        return float(np.median(known)) if known else None

    @property
    def verdict(self) -> str:
        words = [estimate.verdict for estimate in self.estimates]
        if len(words) == 1:
            return word_shown(self.estimates[0])
        if len(set(words)) == 1:
            return words[0]
        return " ".join(f"{words.count(word)} {word}" for word in STATUS if word in words)

    @property
    def worst(self) -> str:
        """The least of their verdicts."""
        return max((estimate.verdict for estimate in self.estimates), key=list(STATUS).index)

    @property
    def status(self) -> Status:
        return STATUS[self.worst]

    @property
    def excluded(self) -> str:
        count = sum(estimate.nominal_excluded for estimate in self.estimates)
        return f"{count}/{len(self.estimates)}" if count else ""


def grouped(result: Calibration) -> list[Group]:
    """All estimates, like joints together, in the order in which they were fitted."""
    found: dict[tuple[str, ...], list[Estimate]] = {}
    for estimate in result.estimates:
        found.setdefault(_key(estimate), []).append(estimate)
    return [Group(name=_named(key), estimates=tuple(members)) for key, members in found.items()]


def kind_errors(result: Calibration) -> list[tuple[str, float, float]]:
    """(kind of joint, nominal, calibrated) open-loop errors in mrad, means over like joints; held out if any."""
    before = result.holdout_nominal or result.fit_nominal
    after = result.holdout_calibrated or result.fit_calibrated
    kinds: dict[str, list[int]] = {}
    for k, name in enumerate(result.joint_names):
        kinds.setdefault(joint_kind(name), []).append(k)
    return [
        (_plain(kind), 1e3 * _mean(before.open_loop, at), 1e3 * _mean(after.open_loop, at))
        for kind, at in kinds.items()
    ]


def _mean(values: Sequence[float], at: Sequence[int]) -> float:
    return float(np.mean([values[k] for k in at]))


def _key(estimate: Estimate) -> tuple[str, ...]:
    entry = estimate.parameter
    shown = entry.label.split(" ")[0]  # with its axis
    return (shown, entry.unit, *dict.fromkeys(joint_kind(name) for name in entry.of))


def _named(key: tuple[str, ...]) -> str:
    name, unit, *kinds = key
    where = f" {_plain(kinds[0])}" if len(kinds) == 1 else ""
    return f"{name}{where}, {unit}" if unit else f"{name}{where}"


def _plain(kind: str) -> str:
    """*_hip_joint -> hip."""
    return kind.removesuffix("_joint").replace("*", "").strip("_.-") or kind
