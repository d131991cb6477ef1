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
        f"| pace | {shown(part['pace'])} |",
        f"| {part['chosen']} | **{shown(held)}** |",
        "",
        "These last 15 s are not untouched: they were scored before, with an earlier form of the stops (`hung,kp`, "
        "0.0118), and with the fit to seconds 0 to 14 (0.0087). The form of the stops was changed after a look at "
        "residuals in seconds 0 to 20, so seconds 14 to 20 flatter it too. `hung` without kp was not tried.",
        "",
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
        f"Lowest: {part['best']}; the intervals of {', '.join(alike)} meet: no difference is shown there. What "
        f"remains of {part['best']}, by joint and frequency (mrad):",
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
