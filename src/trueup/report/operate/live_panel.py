"""Panel of the live page as HTML: state of the run, command, guard margins, joints."""

from __future__ import annotations

import html
import math

from trueup.deploy.telemetry_wire import News
from trueup.robot.load import Robot

_SILENT_S = 1.0
_LOW, _CLOSE = 0.15, 0.4  # margins shown in red, in amber
_CELL = '<td style="text-align:right;padding:0 0.4em;font-variant-numeric:tabular-nums">'


def readout(robot: Robot, news: News | None, age_s: float, is_over: bool) -> str:
    """The panel as HTML: state of the run, command, margins as bars, joints as a table."""
    if news is None:
        return _box("waiting for the run", "#666")
    parts = []
    if news.trip:
        parts.append(_box(f"STOPPED: {news.trip}", "#c62828"))
    elif news.stop_requested:
        parts.append(_box("stop requested", "#c62828"))
    if is_over:
        parts.append(_box("the run is over", "#666"))
    elif age_s > _SILENT_S:
        parts.append(_box(f"no news for {age_s:.0f} s", "#ef6c00"))
    flags = html.escape(", ".join(news.flags))
    volts = f" · {news.voltage:.1f} V" if math.isfinite(news.voltage) else ""
    parts.append(f"<div>{news.time_s:.1f} s{volts} · {flags}</div>")
    asked = " · ".join(f"{html.escape(name)} {value:+.2f}" for name, value in news.asked.items())
    parts.append(f"<div>asked: {asked or 'nothing'}</div>")
    rooms = {name: min(max(room, 0.0), 1.0) if math.isfinite(room) else 0.0 for name, room in news.margins.items()}
    parts += [_bar(name, rooms[name]) for name in sorted(rooms, key=lambda name: rooms[name])]
    parts.append(_joints(robot, news))
    return f'<div style="padding:0.4em 0.6em;font-size:0.85em">{"".join(parts)}</div>'


def _box(text: str, colour: str) -> str:
    style = f"background:{colour};color:white;padding:0.4em;border-radius:4px;margin-bottom:0.3em"
    return f'<div role="alert" style="{style}">{html.escape(text)}</div>'


def _bar(name: str, share: float) -> str:
    """Room left to a guard's limit as a bar, full where it is far."""
    colour = "#c62828" if share < _LOW else "#ef6c00" if share < _CLOSE else "#2e7d32"
    inner = f'<div style="width:{share:.0%};height:100%;background:{colour}"></div>'
    outer = f'<div style="height:0.5em;background:#ddd">{inner}</div>'
    return f"<div>{html.escape(name)} {share:.0%}{outer}</div>"


def _joints(robot: Robot, news: News) -> str:
    rows = ["<tr><td></td>" + "".join(f"{_CELL}{name}</td>" for name in ("rad", "target", "N m", "°C")) + "</tr>"]
    targets = news.target_pos or [float("nan")] * robot.spec.njoint
    columns = (news.joint_pos, targets, news.joint_torque, news.joint_temperature)
    for k, name in enumerate(robot.spec.joint_names):
        cells = [f"{column[k]:.{digits}f}" for column, digits in zip(columns, (2, 2, 1, 0), strict=True)]
        shown = "".join(f"{_CELL}{'-' if cell == 'nan' else cell}</td>" for cell in cells)
        rows.append(f"<tr><td>{html.escape(name.removesuffix('_joint'))}</td>{shown}</tr>")
    return f'<table style="width:100%">{"".join(rows)}</table>'
