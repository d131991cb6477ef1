"""`trueup task init`: measure both robots, scale the task, write the file, and say what could not be known."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.robot.load import Robot, load_robot, zoo_names
from trueup.tasks.build import with_servo
from trueup.tasks.load import load_task
from trueup.tasks.sensing.mirror import pair_limbs
from trueup.tasks.similar.figures import measure
from trueup.tasks.similar.laws import Laws, Speeds
from trueup.tasks.similar.scale import Scaled, require_scalable, scale_task
from trueup.tasks.similar.servo import settle
from trueup.tasks.similar.source import function_name, task_source
from trueup.tasks.task import Task
from trueup.world.batch import BatchSim, SimCfg

_FAST = 1.5  # times the Froude number of the reference
# what a robot should have, by the names in its figures, and what to look at if it has not
_LACKS = {
    "forward": "its knees do not turn about y: does it face along x in its model? Commands are for x forward, y left",
    "diagonal": "its first and last foot are not on a diagonal: order feet as front left, front right, rear left, ...",
    "rotors": "its joints have no armature (rotor inertia times gear ratio squared), so legs swing too easily: write "
    "it into the model, or calibrate",
    "trunk": "no shape of its trunk can touch the ground: only tilt ends an episode",
}


@dataclass(frozen=True, kw_only=True)
class InitiatedTask:
    """The file that was written, its function (as `trueup train` takes it), what was scaled, and what to look at."""

    path: Path
    reference: str
    task: str
    scaled: Scaled
    cautions: tuple[str, ...]

    @property
    def call(self) -> str:
        """FILE.py:FUNCTION."""
        return f"{self.path}:{function_name(self.task)}"


def init_task(
    robot: str | Path, like: str, out: Path, *, speeds: Speeds = "same", force: bool = False
) -> InitiatedTask:
    """Write a task for a robot by scaling a task of another one, and load it once to see that it works.

    speeds  "same": commands keep their m/s; "froude": they go with sqrt(g l), so that the robot walks alike
    """
    _check_out(out, force)
    task = load_task(like)
    require_scalable(task)
    mine, other = load_robot(robot), with_servo(load_robot(task.robot), task.servo)
    laws = Laws(measure(other), measure(mine), speeds)
    scaled = scale_task(task, mine, laws, settle(task.rates, other, mine, laws))
    mirror = _no_mirror(mine) if task.symmetric else None
    name = f"{mine.spec.name}-{task.name.partition('-')[2] or task.name}"  # go2-velocity -> b2-velocity
    text = task_source(scaled, name=name, like=like, robot=_robot_code(str(robot), out), mirror=mirror)
    write_atomic(out, text)
    done = InitiatedTask(
        path=out, reference=task.name, task=name, scaled=scaled, cautions=tuple(_cautions(task, scaled, mirror))
    )
    load_task(done.call)
    return done


def _check_out(out: Path, force: bool) -> None:
    if out.suffix != ".py":
        raise TrueupError("a task is a Python file: choose a name that ends in .py", file=out)
    if out.exists() and not (force and out.is_file()):
        raise TrueupError("exists; choose another name, or pass --force to write over it", file=out)


def _robot_code(robot: str, out: Path) -> str:
    """Python for the robot as seen from the file: a built-in name, or a path beside it."""
    if robot.partition(":")[0] in zoo_names():
        return json.dumps(robot)
    try:
        way = os.path.relpath(Path(robot).resolve(), out.resolve().parent)
    except ValueError:  # another drive
        return json.dumps(str(Path(robot).resolve()))
    return f"str((Path(__file__).parent / {json.dumps(Path(way).as_posix())}).resolve())"


def _no_mirror(robot: Robot) -> str | None:
    """Why left and right of a robot cannot be exchanged; None if they can."""
    try:
        pair_limbs(BatchSim(robot, SimCfg(nsim=1, threads=1)))
    except TrueupError as error:
        return error.message
    return None


def _cautions(task: Task, scaled: Scaled, mirror: str | None) -> Iterator[str]:
    ref, robot = scaled.laws.reference, scaled.laws.robot
    if mirror is not None:
        yield f"left and right are not exchanged in training: {mirror}"
    if robot.feet != ref.feet:
        yield f"it has {robot.feet} feet, {ref.name} has {ref.feet}: look at the rewards for feet"
    if robot.others:
        some = ", ".join(robot.others[:4])
        yield f"{len(robot.others)} joints are not in legs and hold the default pose with their own gains: {some}"
    yield from (text for name, text in _LACKS.items() if not getattr(robot, name))
    for name, reward in scaled.rewards.items():
        if reward.term.unit is None:
            yield f"reward {name!r}: its unit is not known, so its weight is kept"
        if reward.term.code is None:
            yield f"reward {name!r}: not a function or dataclass of trueup.tasks.terms.rewards, so its numbers are kept"
    bound = scaled.servo[0].why
    if bound.startswith("bounded"):
        yield f"kp is {bound}"
    if task.terrain is not None:
        yield "the terrain is not scaled: steps and gaps are as large as before"
    fast = max(abs(speed) for speed in getattr(task.goal, "forward", (0.0,)))
    if scaled.laws.speeds == "same" and robot.froude(fast) > _FAST * ref.froude(fast):
        yield (
            f"{fast:g} m/s is a Froude number of {robot.froude(fast):.2f} for these legs ({ref.name}: "
            f"{ref.froude(fast):.2f}); --speeds froude asks for {fast * robot.time / ref.time:.2g} m/s instead"
        )
