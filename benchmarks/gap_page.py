"""Tables and headline numbers of the diagnosis of planted causes."""

from __future__ import annotations

from collections import Counter

import numpy as np
from gap_cases import HOT_SHARE
from parts import Numbers, table

CLEAN = "nothing wrong"
_WHERE = {
    "air": ("In the air", "held in the air and moved by a multisine of 10 s (encoders and commands)"),
    "walking": ("Walking", "that walk for 10 s under a policy, encoders, IMU and the policy's bundle (no odometry)"),
}
_MORE = {
    "air": "",
    "walking": " Heat is drawn until a motor that it has weakened gives all that it still has in "
    f"{HOT_SHARE:.0%} of the walk: a limit that is not reached changes nothing.",
}


def shares(rows: dict[str, Numbers]) -> Numbers:
    """Shares over planted causes, and of sound twins."""
    planted = [row for key, row in rows.items() if cause_of(key) != CLEAN]
    clean = [row for key, row in rows.items() if cause_of(key) == CLEAN]
    share = lambda rows, name: round(float(np.mean([bool(row[name]) for row in rows])), 3) if rows else None  # noqa: E731
    return {"top1": share(planted, "top1"), "top3": share(planted, "top3"), "clean": share(clean, "top1")}


def twin_numbers(rows: dict[str, Numbers], part: str, everything: dict[str, Numbers]) -> Numbers:
    """Headline numbers of one part, and of both together."""
    own = {f"{name}_{part}": value for name, value in shares(rows).items()}
    cpu = round(float(np.median([row["cpu_s"] for row in rows.values()])), 1)
    return {**shares(everything), **own, f"cpu_s_{part}": cpu}


def twin_section(rows: dict[str, Numbers], part: str, asked: int) -> str:
    """A table by cause, and every wrong answer; `asked`: diagnoses that the command makes when it ends."""
    title, what = _WHERE[part]
    found = shares(rows)
    causes = list(dict.fromkeys(cause_of(key) for key in rows))
    seeds = sorted({int(key.rsplit(" ", 1)[1]) for key in rows})
    lines = []
    for cause in causes:
        own = {key: row for key, row in rows.items() if cause_of(key) == cause}
        wrong = Counter(str(row["first"]) for row in own.values() if not row["top1"])
        words = ", ".join(f"{name} {count}" for name, count in wrong.most_common())
        lines.append((cause, len(own), sum(bool(row["top1"]) for row in own.values()),
                      sum(bool(row["top3"]) for row in own.values()), words or "-"))  # fmt: skip
    missed = [(key, ", ".join(row["said"]), row["evidence"] or "-") for key, row in rows.items() if not row["top1"]]
    cpu, planted = np.median([row["cpu_s"] for row in rows.values()]), sum(cause_of(key) != CLEAN for key in rows)
    text = [
        f"## {title}",
        f"go2 twins {what}, {len(rows) - planted} sound and {planted} with one planted cause, sizes and joints drawn "
        "by the seed. A sound twin differs from the model as a good calibration leaves it "
        f"(`benchmarks/presets/sound.toml`).{_MORE[part]} Seeds {seeds[0]} to {seeds[-1]}, not looked at "
        "before. "
        f"Right cause first: **{_percent(found['top1'])}** (asked 80 %); among the first three: "
        f"**{_percent(found['top3'])}** (asked 95 %); sound twins told to be sound: **{_percent(found['clean'])}** "
        f"(asked 90 %). One diagnosis takes {cpu:.0f} s of one core (median).",
        table(("planted", "twins", "first", "in first three", "first instead"), lines),
    ]
    if len(rows) < asked:
        text.insert(2, f"{len(rows)} of {asked} diagnoses are made; the same command goes on with the rest.")
    if missed:
        text += ["Every answer that was not right:", table(("twin", "said", "evidence of the first"), missed)]
    return "\n\n".join(text)


def cause_of(key: str) -> str:
    """ "weak motors 3" -> "weak motors"."""
    return key.rsplit(" ", 1)[0]


def _percent(share: object) -> str:
    return "-" if share is None else f"{100.0 * float(share):.0f} %"  # type: ignore[arg-type]
