"""Score: results of a policy in every scenario, as data that is read and written as JSON (`score.json`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from trueup._version import __version__
from trueup.core.documents import read_json, write_json
from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.verb_package import Shown
from trueup.tasks.evaluation.statistics import Rate, Spread, mcnemar

FILE, SCHEMA = "score.json", 1


@dataclass(frozen=True, kw_only=True)
class RedFlag:
    """A measured behaviour unfit for a robot: observation, usual cause and remedy."""

    name: str
    seen: str
    cause: str
    fix: str


@dataclass(frozen=True, kw_only=True)
class ScenarioResult:
    """One scenario: success with its interval, and the numbers of its trials.

    key       hash of all inputs: a result with an equal key is reused
    passed    the lower end of the interval is at least `least`
    reasons   why trials failed, and how many
    metrics   by the names of `evaluate.trials.meter.METRICS`
    flags     share of time with each of the task's red flags
    failed    of each trial: "" or why it failed; `error` its error (None: it has none)
    worst     the trial that is kept as film and log, files in the score's folder
    """

    name: str
    title: str
    key: str
    rate: Rate
    least: float
    passed: bool
    reasons: dict[str, int]
    metrics: dict[str, Spread]
    flags: dict[str, float]
    failed: tuple[str, ...]
    error: tuple[float | None, ...]
    worst: int
    film: str | None = None
    log: str | None = None
    not_honoured: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    took_s: float = 0.0

    def mean(self, name: str) -> float | None:
        """Mean of a number over the trials; None where there is none."""
        return self.metrics[name].mean if name in self.metrics else None


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """Tolerated change of one parameter: success at each level, and the margin.

    margin  the last level, from the mildest on, at which the success rate is at least `SENSITIVE` (0.9); None: none is
    breaks  the first level at which it is less; None: none of them breaks the policy
    """

    title: str
    param: str
    unit: str
    operation: str
    levels: tuple[float, ...]
    rates: tuple[Rate, ...]
    margin: float | None
    breaks: float | None


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """Two parameters at once, each two thirds of the way to its margin."""

    titles: tuple[str, str]
    levels: tuple[float, float]
    rate: Rate


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """Parameter changes at which a policy fails in the scenario `base`; `pairs`: worst first."""

    key: str
    base: str
    trials: int
    nominal: Rate
    probes: tuple[ProbeResult, ...]
    pairs: tuple[PairResult, ...]


@dataclass(frozen=True, kw_only=True)
class PolicyScore(Shown):
    """Score of a policy. `complete`: it has every requested scenario."""

    policy: str
    bundle_hash: str
    task: str
    robot: str
    engine: str
    seed: int
    trials: int
    suite: str
    suite_hash: str
    error_label: str
    fit_hash: str = ""
    complete: bool = True
    results: tuple[ScenarioResult, ...] = ()
    red_flags: tuple[RedFlag, ...] = ()
    sensitivity: Sensitivity | None = None
    schema: int = SCHEMA
    trueup: str = __version__
    folder: Path | None = field(default=None, compare=False)

    def __getitem__(self, name: str) -> ScenarioResult:
        found = {result.name: result for result in self.results}
        if name not in found:
            raise TrueupError(f"this score has no scenario {name!r}{did_you_mean(name, found)}")
        return found[name]

    @property
    def passed(self) -> bool:
        """Every scenario was passed."""
        return self.complete and all(result.passed for result in self.results)

    @property
    def worst(self) -> ScenarioResult:
        """The scenario with the lowest success rate."""
        return min(self.results, key=lambda result: result.rate.share)

    def film(self, name: str) -> Path:
        """The film of a scenario's worst trial."""
        return self._file(self[name].film, name, "film")

    def log(self, name: str) -> Path:
        """The log of a scenario's worst trial (MCAP)."""
        return self._file(self[name].log, name, "log")

    def _file(self, file: str | None, name: str, what: str) -> Path:
        if file is None or self.folder is None:
            raise TrueupError(f"no {what} of scenario {name!r} was kept: evaluate with `out`")
        return self.folder / file


def write_score(score: PolicyScore, folder: Path) -> Path:
    """Write score.json."""
    return write_json(folder / FILE, replace(score, folder=None))


def read_score(path: str | Path) -> PolicyScore:
    """Read a score from its file or folder."""
    score = read_json(path, PolicyScore, "score", name=FILE, schema=SCHEMA)
    return replace(score, folder=Path(path) if Path(path).is_dir() else Path(path).parent)


@dataclass(frozen=True, kw_only=True)
class Duel:
    """Two policies in one scenario, trial by trial: `outcome` of the first, p of McNemar's exact test."""

    name: str
    outcome: str
    p: float


def compare(first: PolicyScore, second: PolicyScore) -> tuple[Duel, ...]:
    """Scenario by scenario: "won", "drawn" or "lost" by the first. Trials of one seed meet the same conditions."""
    if (first.suite_hash, first.seed, first.trials) != (second.suite_hash, second.seed, second.trials):
        raise TrueupError("these scores are of other scenarios, seeds or numbers of trials: they cannot be compared")
    known = {result.name: result for result in second.results}
    return tuple(_duel(result, known[result.name]) for result in first.results if result.name in known)


def _duel(first: ScenarioResult, second: ScenarioResult) -> Duel:
    pairs = [(not a, not b) for a, b in zip(first.failed, second.failed, strict=True)]
    only_first, only_second = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    p = mcnemar(only_first, only_second)
    outcome = "drawn" if p >= 0.05 else "won" if only_first > only_second else "lost"
    return Duel(name=first.name, outcome=outcome, p=p)
