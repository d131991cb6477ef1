"""Finding and Report: what the validator says about a log, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from trueup.data.check.catalogue import CATALOGUE

Level = Literal["error", "warning", "note"]
_LEVELS = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One flaw of a log.

    code         stable name, a key of CATALOGUE
    level        error: do not use the log as it is; warning: usable with care; note: worth knowing
    evidence     what was seen, in words and numbers
    consequence  what goes wrong if nobody acts
    fix          what to do
    signal       the signal it is about, "" for the log as a whole
    joints       the joints it is about, () for all or none
    numbers      the numbers of the evidence, SI units
    score        0..1, how sure and how bad; ranks findings of one level
    """

    code: str
    level: Level
    evidence: str
    consequence: str
    fix: str
    signal: str
    joints: tuple[str, ...]
    numbers: dict[str, float]
    score: float

    def as_dict(self) -> dict[str, object]:
        """The finding as plain values for JSON."""
        return asdict(self) | {"joints": list(self.joints), "score": round(self.score, 4)}


def make_finding(
    code: str,
    level: Level,
    evidence: str,
    signal: str = "",
    joints: Sequence[str] = (),
    /,
    *,
    score: float = 0.5,
    **numbers: float,
) -> Finding:
    """Fill a finding's consequence and fix from the catalogue."""
    consequence, fix = CATALOGUE[code]
    return Finding(
        code=code,
        level=level,
        evidence=evidence,
        consequence=consequence,
        fix=fix,
        signal=signal,
        joints=tuple(joints),
        numbers={key: float(value) for key, value in numbers.items()},
        score=min(max(float(score), 0.0), 1.0),
    )


@dataclass(frozen=True, kw_only=True)
class Report:
    """All findings on one log, worst first, and what was measured along the way.

    measured holds numbers that are no flaw but that a user wants to know (rate, command lag); SI units.
    """

    findings: tuple[Finding, ...]
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.level != "error" for finding in self.findings)

    @property
    def codes(self) -> frozenset[str]:
        """The codes that occur."""
        return frozenset(finding.code for finding in self.findings)

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """Errors and warnings, without the notes."""
        return tuple(finding for finding in self.findings if finding.level != "note")

    def as_dict(self) -> dict[str, object]:
        """The report as plain values for JSON."""
        findings = [finding.as_dict() for finding in self.findings]
        return {"usable": self.usable, "findings": findings, "measured": dict(self.measured)}


def ranked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Order findings: errors, warnings, notes; within a level by score, then by code for a stable order."""
    return tuple(sorted(findings, key=lambda f: (_LEVELS.index(f.level), -f.score, f.code, f.joints)))
