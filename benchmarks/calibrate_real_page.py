"""The page of `calibrate_real`: its numbers as Markdown tables."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

GO2_TARGET = 0.015  # rad
BANDS_HZ = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
Row = dict[str, Any]


def text_of(numbers: Row) -> str:
    out = ["# Calibration on recordings of real robots", ""]
    if "go2" in numbers:
        out += go2_text(numbers["go2"])
    if "so101" in numbers:
        out += so101_text(numbers["so101"])
    return "\n".join(out)


def go2_text(part: Row) -> list[str]:
    held = part["heldout"]
    verdict = "reached" if held["rmse_rad"] < GO2_TARGET else "missed"
    out = [
        "## go2 in the air",
        "",
        "Open-loop position error, mean over joints of the root mean square (rad); in brackets 5 % and 95 % over "
        "bootstrap draws of 1 s blocks. Sets of parameters were compared on seconds 14 to 20 after a fit to seconds 0 "
        "to 14:",
        "",
        "| parameters | validation, rad | windows of 0.5 s, rad | CPU s |",
        "| --- | --- | --- | --- |",
    ]
    for name, trial in part["validation"].items():
        out.append(f"| {name} | {shown(trial)} | {trial['window_rmse_rad']:.4f} | {trial['cpu_s']:.0f} |")
    out += [
        "",
        f"Chosen: `{part['chosen']}`, fitted to seconds 0 to 20 and judged on seconds 20 to 35 (target "
        f"below {GO2_TARGET}: {verdict}):",
        "",
        "| simulator | seconds 20 to 35, rad |",
        "| --- | --- |",
        f"| nominal | {shown(part['nominal'])} |",
        f"| set by hand (armature 0.01, damping 0.2, no dry friction, 5 ms delay) | {shown(part['hand_tuned'])} |",
        f"| public model (damping 2 in every joint) | {shown(part['public'])} |",
        f"| pace, from the public model | {shown(part['public_pace'])} |",
        *(f"| {name} | {shown(final)} |" for name, final in part["finals"].items()),
        "",
        "These last 15 s are not untouched: they were scored before, with an earlier form of the stops (`hung,kp`, "
        "0.0118), with the fit to seconds 0 to 14 (0.0087), and while the built-in go2 was fitted.",
        "",
        *handed_text(part["handed_on"]),
        "What remains, by joint and frequency (mrad):",
        "",
        *band_table(part),
        "",
        "What the fit says of how the robot was held:",
        "",
        "| parameter | estimate | verdict |",
        "| --- | --- | --- |",
    ]
    for label, (value, error, unit, word) in part["found"].items():
        out.append(f"| {label} | {value:.3g} +- {error:.2g} {unit} | {word} |")
    return [*out, "", *(f"- {note}" for note in part["notes"]), ""]


def handed_text(handed: Row) -> list[str]:
    """What the fits say of parameters, and how what they hand on replays."""
    out = [
        "### What is said and handed on",
        "",
        "Fits to seconds 0 to 20. Ratio: open-loop error on seconds 20 to 35 of 40 draws of what is handed on over the "
        "estimate's, median and 95 %; asked: 1.3 and 2. Expected: what the error there was to be, from the fit's own "
        "data.",
        "",
        "| fit | identified | bounded | weak | not visible | nominal excluded | ratio | 95 % | error, rad | expected |",
        "| --- " * 10 + "|",
    ]
    for name, one in handed.items():
        low, high = one["expected_rad"]
        out.append(
            f"| {name} | {' | '.join(str(count) for count in one['words'].values())} | {one['excluded']} | "
            f"{one['median_ratio']:.2f} | {one['q95_ratio']:.2f} | {one['error_rad']:.4f} | {low:.4f} to {high:.4f} |"
        )
    public, gains = handed["public numbers, pace"], handed["hung,kp"]
    agree = "agree" if handed["hung"]["calves_agree"] else "do NOT agree"
    return [
        *out,
        "",
        f"- Public numbers: damping 2 N m s/rad is excluded in {public['damping_excluded']} of 12 joints: "
        f"{_ranges(public['damping'])}.",
        f"- `hung`: armatures of the calves {agree} within their intervals: {_ranges(handed['hung']['calves'])}.",
        f"- `hung,kp`: {gains['kp_identified']} of 12 gains are called identified: {_ranges(gains['kp'])}.",
        *(f"- {name}: ALARM: {alarm}" for name, one in handed.items() for alarm in one["alarms"]),
        "",
    ]


def _ranges(rows: list[list[Any]]) -> str:
    return ", ".join(f"{label.split()[-1]} {low:.3g} to {high:.3g}" for label, _, low, high, _ in rows)


def so101_text(part: Row) -> list[str]:
    out = [
        "## SO-101 arm",
        "",
        f"Fitted to {', '.join(part['train'])}; judged on {', '.join(part['held'])}. Open-loop position error over "
        "whole motions of 40 to 120 s. M1 is the set `servo` (pace with the servo's gains and torque limit), M2 to M6 "
        "add their friction coefficients to it.",
        "",
        f"| model | parameters | judged, rad | windows of 0.5 s | fitted | {' | '.join(part['joints'])} | CPU s |",
        "| --- " * (6 + len(part["joints"])) + "|",
    ]
    for name, rung in part["rungs"].items():
        joints = " | ".join(f"{value:.4f}" for value in rung["joints_rad"])
        fit = f"{rung['fit_rmse_rad']:.4f}" if "fit_rmse_rad" in rung else ""
        out.append(
            f"| {name} | {rung['parameters']} | {shown(rung)} | {rung['window_rmse_rad']:.4f} | {fit} | {joints} | "
            f"{rung['cpu_s']:.0f} |"
        )
    best = part["rungs"][part["best"]]
    alike = [name for name, rung in part["rungs"].items() if rung["spread"][0] <= best["spread"][1]]
    out += [
        "",
        "The nominal arm is the built-in so101, whose joint dynamics come from these very recordings, one value for "
        "each kind of joint (its SOURCES.md says which were looked at): a fit of every joint by itself adds nothing to "
        f"it. Lowest of the fits: {part['best']}; the intervals of {', '.join(alike)} meet: no difference is shown "
        f"there. What remains of {part['best']}, by joint and frequency (mrad):",
        "",
        *band_table(part),
        "",
    ]
    mine = [note for note in part["notes"] if note.startswith(part["best"])]
    return [*out, *(f"- {note}" for note in mine), ""]


def band_table(part: Row) -> list[str]:
    heads = [f"{low:g}-{high:g} Hz" for low, high in pairwise(BANDS_HZ)]
    out = [f"| joint | {' | '.join(heads)} |", "| --- " * (len(heads) + 1) + "|"]
    for joint, values in zip(part["joints"], part["bands"], strict=True):
        out.append(f"| {joint} | {' | '.join(f'{1e3 * value:.1f}' for value in values)} |")
    return out


def shown(item: Row) -> str:
    return f"{item['rmse_rad']:.4f} ({item['spread'][0]:.4f} to {item['spread'][1]:.4f})"
