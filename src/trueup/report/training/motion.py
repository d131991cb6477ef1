"""What `trueup motion` shows: what was imported, findings of a check, a film of the reference."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np
from rich.console import Console
from rich.padding import Padding

from trueup.core.errors import TrueupError
from trueup.motion.bodies import complete
from trueup.motion.check import MotionReport, check_motion
from trueup.motion.made.make import MADE
from trueup.motion.made.quadruped import GAITS
from trueup.motion.mend import mend_motion
from trueup.motion.motion import Motion, write_motion
from trueup.motion.readers.open import ReadCfg, open_motion, read_file
from trueup.motion.verbs import CheckVerb, ImportVerb, MotionsVerb, PlayVerb, Source
from trueup.report.terminal import progress_bar, text_table
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import joint_index
from trueup.view.film import film, visual_model

_COLOUR = {"error": "red", "warning": "yellow", "note": "dim"}


def run_import(verb: ImportVerb) -> int:
    """Import, cut, mend, write; 1 if the result is not usable as it is."""
    console, robot = Console(), load_robot(verb.robot)
    if verb.motion.lower().endswith(".bvh"):
        skeleton = read_file(Path(verb.motion), robot, _cfg(verb))
        write_motion(skeleton, verb.out)
        console.print(f"{verb.out}   {_about(skeleton)}: a skeleton, to be retargeted to a robot", soft_wrap=True)
        return 0
    motion = open_motion(verb.motion, robot, _cfg(verb))
    if verb.start or verb.end is not None:
        motion = motion.cut(verb.start, verb.end)
    if verb.resample is not None:
        motion = complete(motion.resampled(verb.resample), robot)
    if verb.mend:
        motion, done = mend_motion(motion, robot)
        for line in done or ["nothing to mend"]:
            console.print(f"mended  {line}")
    report = check_motion(motion, robot)
    print_report(motion, report, console)
    write_motion(motion, verb.out)
    console.print(f"{verb.out}   {_about(motion)}", soft_wrap=True)
    return int(not report.usable)


def run_check(verb: CheckVerb) -> int:
    """Check a motion and print the findings; 1 if it is not usable."""
    robot = load_robot(verb.robot)
    motion = open_motion(verb.motion, robot, _cfg(verb))
    report = check_motion(motion, robot)
    if verb.json:
        print(json.dumps(report.as_dict()))
    else:
        print_report(motion, report, Console())
    return int(not report.usable)


def run_play(verb: PlayVerb) -> int:
    """Film a motion as it is."""
    robot, console = load_robot(verb.robot), Console()
    motion = open_motion(verb.motion, robot, _cfg(verb))
    model = visual_model(robot)
    with progress_bar("filming", console) as progress:
        film(model, qpos_of(motion, robot, model), verb.film, sample_hz=motion.rate_hz, progress=progress)
    console.print(f"film   {verb.film}")
    return 0


def run_list(verb: MotionsVerb) -> int:
    """The made motions."""
    table = text_table(("motion", "robots"))
    for name in MADE:
        table.add_row(name, "go2" if name in GAITS else "g1, g1_23")
    Console().print(table)
    return 0


def qpos_of(motion: Motion, robot: Robot, model: mujoco.MjModel) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Rows of qpos of a model in which the robot's base is free."""
    if model.jnt_type[0] != mujoco.mjtJoint.mjJNT_FREE:
        raise TrueupError(f"robot {robot.spec.name!r} has no free base to move")
    qpos = np.tile(model.qpos0, (len(motion), 1))
    qpos[:, :3], qpos[:, 3:7] = motion.root_pos, motion.root_quat
    qpos[:, joint_index(model, robot).qpos] = motion.joint_pos
    return qpos


def print_report(motion: Motion, report: MotionReport, console: Console) -> None:
    """Findings with what to do, then the figures."""
    for one in report.findings:
        colour = _COLOUR[one.level]
        console.print(f"[{colour}]{one.level}[/{colour}] {one.code}: {one.evidence}")
        console.print(Padding(f"do: {one.fix}", (0, 0, 0, 4)))
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
