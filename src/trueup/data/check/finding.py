"""Finding and Report: results of the validator, for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from trueup.data.check.catalogue import CONSEQUENCES, FIXES

Level = Literal["error", "warning", "note"]
_LEVELS = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One flaw of a log.

    code      stable name, a key of CONSEQUENCES (effect if ignored) and FIXES (what to do)
    level     error: do not use the log as it is; warning: usable with care; note: worth knowing
    evidence  observation with its numbers, as text
    signal    the signal it is about, "" for the log as a whole
    joints    the joints it is about, () for all or none
    score     0..1, how sure and how bad; ranks findings of one level
    numbers   the numbers of the evidence, SI units
    """

    code: str
    level: Level
    evidence: str
    signal: str
    joints: tuple[str, ...]
    score: float
    numbers: dict[str, float]

    @property
    def consequence(self) -> str:
        return CONSEQUENCES[self.code]

    @property
    def fix(self) -> str:
        return FIXES[self.code]

    def as_dict(self) -> dict[str, object]:
        """The finding as plain values for JSON."""
        more = {"joints": list(self.joints), "score": round(self.score, 4)}
        return asdict(self) | more | {"consequence": self.consequence, "fix": self.fix}


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
    """A finding with the numbers of its evidence as keywords."""
    plain = {key: float(value) for key, value in numbers.items()}
    return Finding(code, level, evidence, signal, tuple(joints), min(max(float(score), 0.0), 1.0), plain)


@dataclass(frozen=True, kw_only=True)
class Report:
    """All findings on one log, worst first, and measured quantities.

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
