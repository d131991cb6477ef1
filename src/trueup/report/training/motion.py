"""Output of `trueup motion`: imported motions, findings of a check, films of the reference."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.verb_package import called_with
from trueup.motion.bodies import complete
from trueup.motion.check import MotionReport, check_motion
from trueup.motion.made.make import MADE
from trueup.motion.made.quadruped import GAITS
from trueup.motion.mend import mend_motion
from trueup.motion.motion import Motion, write_motion
from trueup.motion.readers.open import ReadCfg, open_motion, read_file
from trueup.motion.retarget.points import key_points, with_things
from trueup.motion.retarget.retarget import RetargetCfg, Retargeted, retarget
from trueup.motion.verbs import CheckMotionVerb, ImportMotionVerb, MotionsVerb, PlayMotionVerb, RetargetVerb, Source
from trueup.report.terminal import progress_bar, text_table
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import joint_index
from trueup.view.film import film, visual_model

_QUALITIES = {
    "skate_m_s": ("foot skate while standing", 100.0, "cm/s"),
    "penetration_m": ("feet below the ground", 1e3, "mm"),
    "stance_tilt_rad": ("tilt of standing feet", 57.3, "deg"),
    "beyond_limits_rad": ("beyond joint limits", 1.0, "rad"),
    "speed_use": ("of the motors' speed", 100.0, "%"),
    "collision_m": ("in itself or in a thing", 1e3, "mm"),
    "colliding": ("rows that collide", 100.0, "%"),
    "touch_m": ("change of hand to thing", 1e3, "mm"),
}
_COLOUR = {"error": "red", "warning": "yellow", "note": "dim"}


class Imported(NamedTuple):
    """A motion as it was written, what was mended, and what a check says; no report of a skeleton."""

    motion: Motion
    mended: list[str]
    report: MotionReport | None


def _imported(verb: ImportMotionVerb) -> Imported:
    robot = load_robot(verb.robot)
    skeleton = None if verb.motion in MADE else read_file(Path(verb.motion), robot, _cfg(verb))
    if skeleton is not None and not skeleton.joint_names:
        write_motion(skeleton, verb.out)
        return Imported(skeleton, [], None)
    motion, mended = open_motion(verb.motion, robot, _cfg(verb)), list[str]()
    if verb.start or verb.end is not None:
        motion = motion.cut(verb.start, verb.end)
    if verb.resample is not None:
        motion = complete(motion.resampled(verb.resample), robot)
    if verb.mend:
        motion, mended = mend_motion(motion, robot)
    write_motion(motion, verb.out)
    return Imported(motion, mended, check_motion(motion, robot))


def run_import(verb: ImportMotionVerb) -> int:
    """Import, cut, mend, write; 1 if the result is not usable as it is."""
    console, found = Console(), _imported(verb)
    if found.report is None:
        console.print(f"{verb.out}   {_about(found.motion)}: a skeleton, for `trueup motion retarget`", soft_wrap=True)
        return 0
    for line in found.mended or (["nothing to mend"] if verb.mend else []):
        console.print(f"mended  {line}")
    print_report(found.motion, found.report, console)
    console.print(f"{verb.out}   {_about(found.motion)}", soft_wrap=True)
    return int(not found.report.usable)


def _retargeted(verb: RetargetVerb) -> Retargeted:
    robot = load_robot(verb.robot)
    source = load_robot(verb.of or verb.robot)
    made = verb.of is not None or verb.motion in MADE
    motion = open_motion(verb.motion, source, _cfg(verb)) if made else read_file(Path(verb.motion), source, _cfg(verb))
    if motion.joint_names and not motion.body_names:
        motion = complete(motion, source)
    if verb.start or verb.end is not None:
        motion = motion.cut(verb.start, verb.end)
    points = key_points(motion, dict(_pair(text) for text in verb.points))
    if verb.things is not None:
        points = with_things(points, verb.things)
    names = ("hold", "limits", "collisions", "mesh", "steps")
    found = retarget(points, robot, RetargetCfg(**{name: getattr(verb, name) for name in names}))
    write_motion(found.motion, verb.out)
    return found


def run_retarget(verb: RetargetVerb) -> int:
    """Retarget, write, and say how good it is; 1 if the result is not usable."""
    console, found = Console(), _retargeted(verb)
    report = check_motion(found.motion, load_robot(verb.robot))
    if verb.json:
        figures = {"before": asdict(found.before), "after": asdict(found.after), "rows_per_s": found.rows_per_s}
        print(json.dumps({"file": str(verb.out)} | figures | report.as_dict()))
        return int(not report.usable)
    console.print(_qualities(found))
    for finding in report.findings:
        console.print(
            f"[{_COLOUR[finding.level]}]{finding.level}[/{_COLOUR[finding.level]}] {finding.code}: {finding.evidence}"
        )
    console.print(f"{verb.out}   {_about(found.motion)}, {found.rows_per_s:.0f} rows/s on one core", soft_wrap=True)
    return int(not report.usable)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise TrueupError(f"--points takes ROLE=NAME, found {text!r}")
    return name, value


def _qualities(found: Retargeted) -> Table:
    table = text_table(("quality", "plain", "retargeted"))
    before, after = asdict(found.before), asdict(found.after)
    for name, (what, scale, unit) in _QUALITIES.items():
        if after[name] is not None:
            table.add_row(what, *(f"{scale * quality[name]:.2f} {unit}" for quality in (before, after)))
    return table


def run_check(verb: CheckMotionVerb) -> int:
    """Check a motion and print the findings; 1 if it is not usable."""
    robot = load_robot(verb.robot)
    motion = open_motion(verb.motion, robot, _cfg(verb))
    report = check_motion(motion, robot)
    if verb.json:
        print(json.dumps(report.as_dict()))
    else:
        print_report(motion, report, Console())
    return int(not report.usable)


def _played(
    verb: PlayMotionVerb, on_url: Callable[[str], None] = print, progress: Callable[[float], None] | None = None
) -> Path | None:
    """Serve a live page until Ctrl-C, or for `seconds`; with `film` write a film instead and return its path."""
    robot = load_robot(verb.robot)
    motion = open_motion(verb.motion, robot, _cfg(verb))
    if verb.film is not None:
        model = visual_model(robot)
        return film(model, qpos_of(motion, robot, model), verb.film, sample_hz=motion.rate_hz, progress=progress)
    from trueup.report.training.motion_page import MotionPage
    from trueup.train.live.live import run_for

    page = MotionPage(motion, robot, host=verb.host, port=verb.port)
    on_url(page.url)
    run_for(page, page.run, verb.seconds)
    return None


def run_play(verb: PlayMotionVerb) -> int:
    """Film a motion as it is, or show it on a live page."""
    console = Console()
    if verb.film is None:
        _played(verb, lambda url: print(f"live view: {url}  (Ctrl-C ends it)", flush=True))
        return 0
    with progress_bar("filming", console) as progress:
        _played(verb, progress=progress)
    console.print(f"film   {verb.film}")
    return 0


def run_list(verb: MotionsVerb) -> int:
    """The made motions."""
    table = text_table(("motion", "robots"))
    for name in MADE:
        table.add_row(name, "go2" if name in GAITS else "g1, g1_23")
    Console().print(table)
    return 0


def qpos_of(motion: Motion, robot: Robot, model: mujoco.MjModel) -> FloatArray:
    """Rows of qpos of a model in which the robot's base is free."""
    if model.jnt_type[0] != mujoco.mjtJoint.mjJNT_FREE:
        raise TrueupError(f"robot {robot.spec.name!r} has no free base to move")
    qpos = np.tile(model.qpos0, (len(motion), 1))
    qpos[:, :3], qpos[:, 3:7] = motion.root_pos, motion.root_quat
    qpos[:, joint_index(model, robot).qpos] = motion.joint_pos
    return qpos


def print_report(motion: Motion, report: MotionReport, console: Console) -> None:
    """Findings with what to do, then the figures."""
    for finding in report.findings:
        colour = _COLOUR[finding.level]
        console.print(f"[{colour}]{finding.level}[/{colour}] {finding.code}: {finding.evidence}")
        console.print(Padding(f"do: {finding.fix}", (0, 0, 0, 4)))
    figures = report.figures
    feet = ""
    if "skate_m_s" in figures:
        feet = (
            f"foot skate {figures['skate_m_s'] * 100:.1f} cm/s, penetration {figures['penetration_m'] * 1e3:.0f} mm, "
        )
    console.print(f"{_about(motion)}; {feet}fastest joint at {figures['speed_use'] * 100:.0f} % of its motor's speed")
    if not report.findings:
        console.print("no findings")


def _about(motion: Motion) -> str:
    what = f"{len(motion.joint_names)} joints" if motion.joint_names else f"{len(motion.body_names)} bodies"
    return f"{motion.seconds:.2f} s at {motion.rate_hz:g} Hz, {what}"


def _cfg(verb: Source) -> ReadCfg:
    return ReadCfg(rate_hz=verb.rate, quat=verb.quat, name=verb.name, episode=verb.episode)


import_motion = called_with(ImportMotionVerb, _imported)
retarget_motion = called_with(RetargetVerb, _retargeted)
play_motion = called_with(PlayMotionVerb, _played)
