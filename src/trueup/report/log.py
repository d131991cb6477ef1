"""Output of `trueup data` and `trueup record` on a log: findings, a page of traces, files written."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.padding import Padding

from trueup.core.errors import TrueupError
from trueup.data.check.finding import Finding, Report
from trueup.data.files import read_log, write_log_file
from trueup.data.import_table import import_logs
from trueup.data.lerobot.episodes import LerobotCfg, import_dataset
from trueup.data.lerobot.info import is_dataset
from trueup.data.log import SIGNALS, Log
from trueup.data.mapping import find_mapping
from trueup.data.mcap.recover import recover
from trueup.data.verbs import CheckLogVerb, ConvertVerb, ImportLogVerb, RecoverVerb
from trueup.hardware.policy_rows import FILE
from trueup.report.joints.overview import TraceKind, joint_sections, quantity
from trueup.report.page import Badge, Page
from trueup.robot.load import Robot, load_robot, zoo_names
from trueup.robot.reference import check_log, log_reference
from trueup.robot.spec import RobotSpec

_DRAWN = {
    "Positions": {"measured": "joint_pos", "target": "target_pos"},
    "Velocities": {"measured": "joint_vel"},
    "Torques": {"measured": "joint_torque"},
}
_COLOUR = {"error": "red", "warning": "yellow", "note": "dim"}


def run_check(verb: CheckLogVerb) -> int:
    """Check a log and print the findings; 1 if it is not usable."""
    log = read_log(verb.log, verb.mapping)
    report = check_log(log, verb.robot)
    print_report(log, report, as_json=verb.json)
    if verb.page is not None:
        write_log_page(log, report, verb.page, title=verb.log.name, robot=verb.robot)
    return int(not report.usable)


def run_import(verb: ImportLogVerb) -> int:
    """Import recordings or episodes, one into a file, several into a folder."""
    found = _recordings(verb)
    first = next(found, None)
    second = next(found, None) if verb.out.suffix else None
    if second is not None:
        raise TrueupError("several recordings were found: --out must be a folder", file=verb.out)
    for name, log in itertools.chain([first] if first else [], found):
        _write(log, verb.out if verb.out.suffix else verb.out / f"{name}.mcap")
    return 0


def _recordings(verb: ImportLogVerb) -> Iterator[tuple[str, Log]]:
    """Recordings by a mapping, or episodes of a LeRobot dataset."""
    if not verb.files:
        raise TrueupError("no file given to import")
    for path in verb.files:
        if not path.exists():
            raise TrueupError("no such file or folder: what is to be imported?", file=path)
    mapping = None if verb.mapping is None else find_mapping(verb.mapping)
    datasets = [path for path in verb.files if is_dataset(path)]
    if not datasets:
        if mapping is None and verb.files[0].suffix == ".mcap":
            raise TrueupError("this is a log already: every verb reads it as it is", file=verb.files[0])
        if mapping is None:
            folder = "no LeRobot dataset (meta/info.json is missing), and " if verb.files[0].is_dir() else ""
            text = f"{folder}tables need a mapping: --mapping NAME or FILE.toml (docs/data.md)"
            raise TrueupError(text, file=verb.files[0])
        yield from import_logs(verb.files, mapping)
    elif len(verb.files) > 1:
        raise TrueupError("a dataset is imported alone: name no other files", file=datasets[0])
    else:
        cfg = LerobotCfg(units=verb.units, joints=verb.joints, calibration=verb.calibration, episodes=verb.episodes)
        robot = None if verb.robot is None else load_robot(verb.robot)
        reference, name = (None, "") if robot is None else (log_reference(robot.spec), robot.spec.name)
        yield from import_dataset(datasets[0], reference, cfg, robot_name=name, mapping=mapping)


def run_convert(verb: ConvertVerb) -> int:
    """Write a log in another format; a recording of `trueup deploy` becomes MCAP."""
    if verb.source.name == FILE or (verb.source / FILE).is_file():
        from trueup.hardware.policy_mcap import convert_rows

        found = convert_rows(verb.source, verb.out)
        damaged = f", {found.damaged} damaged rows left out" if found.damaged else ""
        text = f"{found.path}   {found.rows} control steps, {found.events} events of the guard{damaged}"
        Console().print(text, soft_wrap=True)
        return 0
    _write(read_log(verb.source), verb.out)
    return 0


def _write(log: Log, path: Path) -> None:
    file = write_log_file(log, path)
    Console().print(f"{file}   {len(log)} rows, {_seconds(log)}, {len(log.joint_names)} joints", soft_wrap=True)


def run_recover(verb: RecoverVerb) -> int:
    """Recover a log, and print the losses."""
    result, console = recover(verb.log, verb.out), Console()
    console.print(f"{result.out_path}   {result.messages} messages saved, about {result.lost_estimate} lost")
    for damage in result.damage:
        console.print(f"  byte {damage.offset}: {damage.text}", style="dim", markup=False)
    return 0


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


def write_log_page(log: Log, report: Report, path: Path, title: str, robot: Robot | str | None = None) -> Path:
    """Write a page with findings and traces, the joints nearest to a limit first.

    robot  whose limits are drawn; default: the built-in one that the log names
    """
    spec = _spec_of(log, robot)
    page = Page(title, f"{log.meta.get('robot', 'log')}, {_seconds(log)}, {len(log.joint_names)} joints")
    page.section("Is this log usable?")
    verdict = Badge("good", "usable") if report.usable else Badge("bad", "not usable as it is")
    page.badges(verdict, Badge("plain", f"{len(report.alarms)} alarms"))
    if rows := [(f.level, f.code, _where(f), f.evidence, f.consequence, f.fix) for f in report.findings]:
        page.table(("level", "finding", "where", "evidence", "consequence", "fix"), rows)
    else:
        page.text("Nothing to complain about.")
    joint_sections(page, log.time - log.time[0], log.joint_names, _quantities(log, spec))
    page.section("Where it comes from")
    page.code(json.dumps(log.meta, indent=1, default=str), folded="What the log says about itself")
    return page.write(path)


def _quantities(log: Log, spec: RobotSpec | None) -> list[TraceKind]:
    """What is drawn of a log."""
    found = []
    for heading, signals in _DRAWN.items():
        if drawn := {label: log[name] for label, name in signals.items() if name in log}:
            found.append(quantity(heading, SIGNALS[next(iter(signals.values()))][1], drawn, spec))
    return found


def _spec_of(log: Log, robot: Robot | str | None) -> RobotSpec | None:
    """The robot that was given, or the one that the log names; None if it is not known or has other joints."""
    named = log.meta.get("robot") if robot is None else robot
    if robot is None and named not in zoo_names():  # a log must not choose which files are opened
        return None
    spec = load_robot(named).spec if isinstance(named, Robot | str) else None
    return spec if spec is not None and spec.joint_names == log.joint_names else None


def _where(finding: Finding) -> str:
    joints = ", ".join(finding.joints[:4]) + (f" and {len(finding.joints) - 4} more" if len(finding.joints) > 4 else "")
    return " ".join(part for part in (finding.signal, joints) if part)


def _seconds(log: Log) -> str:
    return f"{log.time[-1] - log.time[0]:.2f} s" if len(log) > 1 else "no time"
