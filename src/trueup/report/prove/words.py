"""Words for scores that terminal and page share."""

from __future__ import annotations

from trueup.evaluate.score import PolicyScore, ProbeResult
from trueup.report.page import Status
from trueup.tasks.evaluation.statistics import wilson


def verdict_words(score: PolicyScore) -> str:
    """The verdict in a sentence."""
    failed = [result.title for result in score.results if not result.passed]
    total = len(score.results)
    if not score.complete:
        return f"not finished, {total} scenarios done"
    if not failed:
        return f"passes all {total} scenarios"
    shown = "; ".join(failed[:3]) + (f" and {len(failed) - 3} more" if len(failed) > 3 else "")
    return f"passes {total - len(failed)} of {total} scenarios; not {shown}"


def too_few(score: PolicyScore) -> str:
    """Why not even success in every trial would pass a scenario; empty where it would."""
    strictest = max((result.least for result in score.results), default=0.0)
    if wilson(score.trials, score.trials).low >= strictest:
        return ""
    needed = next(count for count in range(1, 10**6) if wilson(count, count).low >= strictest)
    return f"{score.trials} trials are too few to pass: {needed} successes in a row would be needed"


def left_out(score: PolicyScore) -> str:
    """Conditions that this engine cannot simulate, by scenario; empty if there are none."""
    left = {result.name: ", ".join(result.not_honoured) for result in score.results if result.not_honoured}
    every = [part for part in dict.fromkeys(left.values()) if list(left.values()).count(part) == len(score.results)]
    shown = "; ".join(f"{name}: {part}" for name, part in left.items() if part not in every)
    whole = f"{every[0]} in all scenarios" if every else ""
    text = "; ".join(part for part in (whole, shown) if part)
    return f"{score.engine} cannot honour {text}: trials ran without" if text else ""


def verdict_status(score: PolicyScore) -> Status:
    """good: all passed; warn: some; bad: fewer than half."""
    if score.passed:
        return "good"
    return "warn" if 2 * sum(result.passed for result in score.results) >= len(score.results) else "bad"


def level_words(probe: ProbeResult, level: float | None) -> str:
    """A level with its unit; none: "-"."""
    if level is None:
        return "-"
    if probe.unit == "x":
        return f"{level:g} x"
    return f"{level:g} {probe.unit}".replace(" 1", "")
