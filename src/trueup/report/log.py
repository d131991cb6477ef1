"""What `trueup data` and `trueup record` show of a log: findings, a page of traces, what was written."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.padding import Padding

from trueup.data.check.finding import Finding, Report
from trueup.data.log import SIGNALS, Log
from trueup.data.mcap.recover import Recovery
from trueup.report.page import Badge, Page
from trueup.report.traces import joint_traces

_COLOUR = {"error": "red", "warning": "yellow", "note": "dim"}


def print_done(path: Path, log: Log) -> None:
    """One line about a file that was written."""
    Console().print(f"{path}   {len(log)} rows, {_seconds(log)}, {len(log.joint_names)} joints", soft_wrap=True)


def print_recovery(result: Recovery) -> None:
    """What was saved and what was lost."""
    console = Console()
    console.print(f"{result.out_path}   {result.messages} messages saved, about {result.lost_estimate} lost")
    for damage in result.damage:
        console.print(f"  byte {damage.offset}: {damage.text}", style="dim", markup=False)


def print_report(log: Log, report: Report, *, as_json: bool = False) -> None:
    """Findings, worst first."""
    if as_json:
        print(json.dumps(report.as_dict()))
        return
    console = Console()
    rate = report.measured.get("rate_hz")
    shown = f" at {rate:.1f} Hz" if rate else ""
    signals = ", ".join(log.signals)
    console.print(f"{len(log)} rows, {_seconds(log)}{shown}, {len(log.joint_names)} joints: {signals}")
    for finding in report.findings:
        console.print(f"\n[{_COLOUR[finding.level]}]{finding.level}[/] [bold]{finding.code}[/]  {_where(finding)}")
        for text in (finding.evidence, finding.consequence, f"Fix: {finding.fix}"):
            console.print(Padding(text, (0, 0, 0, 2)), markup=False)
    verdict = "[green]usable[/]" if report.usable else "[red]not usable as it is[/]"
    alarms = len(report.alarms)
    console.print(f"\nverdict: {verdict}, {alarms} alarm{'' if alarms == 1 else 's'}")


def log_page(log: Log, report: Report | None, title: str) -> Page:
    """Findings and zoomable traces per joint."""
    page = Page(title, f"{log.meta.get('robot', 'log')}, {_seconds(log)}, {len(log.joint_names)} joints")
    if report is not None:
        page.section("Is this log usable?")
        verdict = Badge("good", "usable") if report.usable else Badge("bad", "not usable as it is")
        page.badges(verdict, Badge("plain", f"{len(report.alarms)} alarms"))
        rows = [(f.level, f.code, _where(f), f.evidence, f.consequence, f.fix) for f in report.findings]
        if rows:
            page.table(("level", "finding", "where", "evidence", "consequence", "fix"), rows)
        else:
            page.text("Nothing to complain about.")
    joints = [name for name, (columns, _) in SIGNALS.items() if columns == "joint" and name in log]
    page.section("Positions")
    positions = {"measured": "joint_pos", "target": "target_pos"}
    drawn = {label: log[name] for label, name in positions.items() if name in log}
    page.plot(joint_traces(log.time - log.time[0], drawn, log.joint_names, "rad"))
    for name, heading in (("joint_vel", "Velocities"), ("joint_torque", "Torques")):
        if name in joints:
            page.section(heading)
            page.plot(joint_traces(log.time - log.time[0], {name: log[name]}, log.joint_names, SIGNALS[name][1]))
    page.section("Where it comes from")
    page.code(json.dumps(log.meta, indent=1, default=str))
    return page


def write_log_page(log: Log, report: Report | None, path: Path, title: str) -> Path:
    """Write the page."""
    return log_page(log, report, title).write(path)


def _where(finding: Finding) -> str:
    joints = ", ".join(finding.joints[:4]) + (f" and {len(finding.joints) - 4} more" if len(finding.joints) > 4 else "")
    return " ".join(part for part in (finding.signal, joints) if part)


def _seconds(log: Log) -> str:
    return f"{log.time[-1] - log.time[0]:.2f} s" if len(log) > 1 else "no time"
