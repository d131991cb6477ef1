"""The page of an evaluation: verdict, scenarios with intervals, films side by side, margins, red flags, provenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueup.evaluate.score import PolicyScore, ScenarioResult, Sensitivity, compare
from trueup.evaluate.sensitivity import SENSITIVE
from trueup.evaluate.trials.meter import METRICS
from trueup.report.page import Badge, Cell, Page
from trueup.report.prove.words import left_out, level_words, too_few, verdict_status, verdict_words
from trueup.report.traces import COLOURS, chart

_NUMBERS = {  # columns of the table of numbers
    "error": "error",
    "turn_error": "turning error, rad/s",
    "power": "power, W",
    "cost_of_transport": "cost of transport",
    "slip": "slip, m/s",
    "torque": "torque, of limit",
    "at_limit": "at limit",
    "thermal": "thermal load",
    "clearance": "clearance, m",
    "jerkiness": "jerkiness, rad/s²",
    "joint_margin": "joint margin",
    "outside": "outside training",
}
_OUTCOME = {"won": "good", "drawn": "plain", "lost": "bad"}


def scores_page(scores: Sequence[PolicyScore]) -> Page:
    """One policy, or several side by side."""
    first = scores[0]
    names = labels(scores)
    page = Page(
        " against ".join(names) if len(scores) > 1 else f"Evaluation of {names[0]}",
        f"{first.suite}: {len(first.results)} scenarios of {first.trials} trials each, {first.task} on {first.robot}",
    )
    for name, score in zip(names, scores, strict=True):
        text = verdict_words(score)
        page.verdict(verdict_status(score), f"{name} {text}." if len(scores) > 1 else f"{text[0].upper()}{text[1:]}.")
    _facts(page, scores, names)
    add_scores(page, scores)
    return page


def add_scores(page: Page, scores: Sequence[PolicyScore]) -> None:
    """Scenarios, films, sensitivity, red flags and numbers, policies or engines side by side."""
    names = labels(scores)
    _scenarios(page, scores, names)
    _films(page, scores, names)
    for name, score in zip(names, scores, strict=True):
        of = f" of {name}" if len(scores) > 1 else ""
        if score.sensitivity is not None:
            _sensitivity(page, score.sensitivity, of)
        _flags(page, score, of)
        _numbers(page, score, of)
    _provenance(page, scores, names)


def labels(scores: Sequence[PolicyScore]) -> list[str]:
    """Labels of the scores: policies, or engines of one policy."""
    if len({score.policy for score in scores}) == len(scores):
        return [score.policy for score in scores]
    return [f"{score.policy} ({score.engine})" for score in scores]


def _facts(page: Page, scores: Sequence[PolicyScore], names: Sequence[str]) -> None:
    for name, score in zip(names, scores, strict=True):
        worst = score.worst
        facts: dict[str, Cell] = {"policy": name} if len(scores) > 1 else {}
        facts |= {
            "passed": f"{sum(result.passed for result in score.results)} of {len(score.results)}",
            "weakest scenario": f"{worst.name}: {worst.rate.share:.0%}",
            "red flags": str(len(score.red_flags)),
            "engine": score.engine,
        }
        flat = score.results[0]
        if (error := flat.mean("error")) is not None:
            facts[f"error, {flat.name}"] = f"{error:.3f} {score.error_label.rpartition(', ')[2]}"
        if (cost := flat.mean("cost_of_transport")) is not None:
            facts["cost of transport"] = f"{cost:.2f}"
        page.facts(facts)


def _scenarios(page: Page, scores: Sequence[PolicyScore], names: Sequence[str]) -> None:
    page.section("Scenarios")
    page.plot(
        _interval_chart(scores, names),
        "Share of trials that succeed, with its 95 % interval (Wilson). Ticks: what the lower end must reach to pass.",
    )
    many = len(scores) > 1
    columns = ["scenario", *(part for name in names for part in ((f"{name}" if many else "success"), "95 %", "error"))]
    duels = {}
    if len(scores) == 2 and scores[0].suite_hash == scores[1].suite_hash and scores[0].policy != scores[1].policy:
        duels = {duel.name: duel for duel in compare(*scores)}
        columns.append(f"{names[0]}")
    if not many:
        columns += ["failed by"]
    rows: list[list[Cell]] = []
    for result in scores[0].results:
        row: list[Cell] = [result.title]
        for score in scores:
            row += _success_cells(next((other for other in score.results if other.name == result.name), None))
        if duels:
            duel = duels[result.name]
            row.append(Badge(_OUTCOME[duel.outcome], duel.outcome))  # type: ignore[arg-type]
        if not many:
            row.append(", ".join(f"{why} {count}" for why, count in result.reasons.items()) or None)
        rows.append(row)
    requirement = "passed: the lower end of the interval is at least 80 %, unless the suite says otherwise"
    page.table(columns, rows, f"error: {scores[0].error_label}, mean over trials; {requirement}.")
    for name, score in zip(names, scores, strict=True):
        for note in (too_few(score), left_out(score)):
            if note:
                page.text(f"{name}: {note}.")


def _success_cells(result: ScenarioResult | None) -> list[Cell]:
    if result is None:
        return [None, None, None]
    badge = Badge("good" if result.passed else "bad", f"{result.rate.successes}/{result.rate.trials}")
    error = result.mean("error")
    return [badge, f"{result.rate.low:.2f} – {result.rate.high:.2f}", None if error is None else f"{error:.3f}"]


def _interval_chart(scores: Sequence[PolicyScore], names: Sequence[str]) -> Any:
    titles = [result.title for result in scores[0].results][::-1]
    size = 26 + 12 * (len(scores) - 1)
    x = {"range": [-0.02, 1.02], "tickformat": ".0%", "title": {"text": "success"}, "zeroline": False}
    y = {
        "automargin": True,
        "range": [-0.6, len(titles) - 0.4],
        "tickvals": list(range(len(titles))),
        "ticktext": titles,
    }
    figure = chart(len(titles) * size + 110, x, y, l=20, t=34)
    figure.update_layout(showlegend=len(scores) > 1)
    for k, (name, score) in enumerate(zip(names, scores, strict=True)):
        shift = 0.0 if len(scores) == 1 else 0.3 * (0.5 - k / (len(scores) - 1))
        known = [
            (titles.index(result.title) + shift, result.rate) for result in score.results if result.title in titles
        ]
        figure.add_scatter(
            x=[rate.share for _, rate in known],
            y=[place for place, _ in known],
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [rate.high - rate.share for _, rate in known],
                "arrayminus": [rate.share - rate.low for _, rate in known],
                "thickness": 2,
                "width": 4,
            },
            mode="markers",
            marker={"color": COLOURS[k + 1], "size": 9},
            name=name,
        )
    figure.add_scatter(
        x=[result.least for result in scores[0].results][::-1],
        y=list(range(len(titles))),
        mode="markers",
        marker={"symbol": "line-ns-open", "color": COLOURS[5], "size": 14},
        name="needed",
        hoverinfo="skip",
    )
    return figure


def _films(page: Page, scores: Sequence[PolicyScore], names: Sequence[str]) -> None:
    kept = [result for result in scores[0].results if result.film is not None]
    if not kept:
        return
    page.section("The worst trial of each scenario")
    shown = []
    for result in kept:
        for name, score in zip(names, scores, strict=True):
            other = next((found for found in score.results if found.name == result.name), None)
            if other is None or other.film is None:
                continue
            why = other.failed[other.worst] or "succeeds"
            who = f"{name}: " if len(scores) > 1 else ""
            shown.append(
                (score.film(result.name), f"{who}{result.title}, trial {other.worst}: {why.replace('_', ' ')}")
            )
    page.films(shown, columns=max(2, len(scores)) if len(scores) > 1 else 3)


def _sensitivity(page: Page, found: Sensitivity, of: str) -> None:
    page.section(f"What breaks it{of}")
    page.plot(
        _margin_chart(found),
        f"Success in {found.base!r} as one parameter moves away from the robot's own value, level by level. Green: at "
        f"least {SENSITIVE:.0%} succeed; yellow: at least half; red: fewer.",
    )
    page.table(
        ["moved", "bears", "breaks at"],
        [[probe.title, level_words(probe, probe.margin), level_words(probe, probe.breaks)] for probe in found.probes],
        f"{found.trials} trials a level; without any change {found.nominal.share:.0%} succeed.",
    )
    bad = [pair for pair in found.pairs[:5] if pair.rate.share < 1.0]
    if bad:
        rows: list[list[Cell]] = [
            [" and ".join(pair.titles), _rate_badge(pair.rate.share), pair.rate.trials] for pair in bad
        ]
        page.table(
            ["worst pairs", "success", "trials"], rows, "Two at once, each two thirds of the way to its own margin."
        )


def _rate_badge(share: float) -> Badge:
    return Badge("good" if share >= SENSITIVE else "warn" if share >= 0.5 else "bad", f"{share:.0%}")


def _margin_chart(found: Sensitivity) -> Any:
    """A row of blocks for each parameter, one a level, coloured by success."""
    titles = [probe.title for probe in found.probes][::-1]
    most = max(len(probe.levels) for probe in found.probes)
    x = {"title": {"text": "level, from the mildest on"}, "showticklabels": False, "zeroline": False, "showgrid": False}
    figure = chart(len(titles) * 30 + 110, x, {"automargin": True, "showgrid": False}, l=20, t=20)
    figure.update_layout(barmode="stack", showlegend=False, bargap=0.25, xaxis_range=[0, most])
    for k in range(most):
        have = [probe for probe in found.probes[::-1] if k < len(probe.levels)]
        shares = [probe.rates[k].share for probe in have]
        figure.add_bar(
            y=[probe.title for probe in have],
            x=[1.0] * len(have),
            orientation="h",
            text=[level_words(probe, probe.levels[k]) for probe in have],
            textposition="inside",
            insidetextanchor="middle",
            customdata=[f"{share:.0%}" for share in shares],
            hovertemplate="%{y} %{text}: %{customdata} succeed<extra></extra>",
            marker={
                "color": [_shade(share) for share in shares],
                "line": {"width": 1, "color": "rgba(128,128,128,0.4)"},
            },
            textfont={"color": "#ffffff"},
        )
    return figure


def _shade(share: float) -> str:
    if share >= SENSITIVE:
        return "#137a45"
    return "#b5831a" if share >= 0.5 else "#b3261e"


def _flags(page: Page, score: PolicyScore, of: str) -> None:
    page.section(f"Red flags{of}")
    if not score.red_flags:
        page.text("None: nothing that was measured is known to fail on robots.")
        return
    rows: list[list[Cell]] = [
        [Badge("warn", flag.name), flag.seen, f"Usually {flag.cause}. To mend it, {flag.fix}."]
        for flag in score.red_flags
    ]
    page.table(["flag", "measured", "usual cause, and what mends it"], rows)


def _numbers(page: Page, score: PolicyScore, of: str) -> None:
    page.section(f"Numbers{of}")
    shown = {name: head for name, head in _NUMBERS.items() if any(name in result.metrics for result in score.results)}
    rows: list[list[Cell]] = [
        [result.name, *(_rounded(result.mean(name)) for name in shown)] for result in score.results
    ]
    page.table(["scenario", *shown.values()], rows, "Means over the trials, until a fall.")
    words = "\n".join(f"{_NUMBERS[name]}: {METRICS[name][0]}" for name in shown)
    page.code(words, folded="What the numbers are")


def _rounded(value: float | None) -> Cell:
    return None if value is None else float(f"{value:.3g}")


def _provenance(page: Page, scores: Sequence[PolicyScore], names: Sequence[str]) -> None:
    page.section("Where this comes from")
    rows: list[list[Cell]] = [
        [
            name,
            score.bundle_hash[:16] or None,
            score.suite_hash[:16],
            score.fit_hash[:16] or None,
            score.seed,
            score.engine,
        ]
        for name, score in zip(names, scores, strict=True)
    ]
    page.table(["policy", "bundle", "scenarios", "calibration", "seed", "engine"], rows, "First digits of SHA-256.")
