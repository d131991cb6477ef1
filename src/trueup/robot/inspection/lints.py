"""Checks of file and spec: left-out parts, guesses, limits, names. Physics: `lints_physics`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import mujoco
import numpy as np

from trueup.core.documents import MAX_BYTES
from trueup.robot.drafts.draft import make_draft
from trueup.robot.inspection.inspect import Level, Lint, Subject, listed
from trueup.robot.inspection.lints_physics import PHYSICS_CHECKS
from trueup.robot.load import SPEC_FILE

GUESS_MARK = "# guessed: "
LIMIT_SLACK = 1e-3  # rad or m
_BAKED_FIX = "mend the model file"

# code of a note -> level, consequence, cure
_NOTES: dict[str, tuple[Level, str, str]] = {
    "visual-mesh-dropped": ("note", "films show less; physics is complete", "convert it to STL or OBJ"),
    "collision-mesh-dropped": ("warning", "this part passes through the floor", "convert it to STL or OBJ"),
    "mesh-dropped": ("warning", "its shapes are missing", "put the file back, or convert it to STL or OBJ"),
    "texture-dropped": ("note", "films look plainer; physics is complete", "put the picture back"),
    "inertia-replaced": ("warning", "the motion of this part is a guess", "write its true inertia"),
    "repaired-balance": ("warning", "such a body cannot exist; its rotation is a guess", "write true inertias"),
    "repaired-bound": ("warning", "a part without mass moves without effort", "give it its mass"),
    "repaired-shell": ("note", "masses are given, so nothing else changes", _BAKED_FIX),
    "mimic-ignored": ("warning", "the two joints do not move together", "add an <equality><joint> to model.xml"),
}
# field of a spec -> code, level, consequence, cure
_GUESSES: dict[str, tuple[str, Level, str, str]] = {
    "position": ("no-position-limits", "warning", "the joint may turn through itself", "write position = [low, high]"),
    "torque": ("no-torque-limits", "warning", "the simulated motor may be too strong or weak", "write the peak torque"),
    "velocity": ("no-velocity-limits", "warning", "speeds the robot cannot reach look normal", "write the top speed"),
    "kp": ("no-gains", "note", "the drafted servo is not the robot's", "write the gains that the robot runs"),
    "kd": ("no-gains", "note", "the drafted servo is not the robot's", "write the gains that the robot runs"),
    "default": ("no-keyframe", "note", "the pose may not be one to start from", "write the pose in which it starts"),
    "passive": ("passive-joints", "note", "they swing freely", "add a [[joint]] if a motor drives them"),
    "base.floating": ("base-guessed", "note", "bolted and floating bases move differently", "set base.floating"),
}


def check_robot(subject: Subject) -> list[Lint]:
    """Run every check."""
    checks = (check_notes, check_guesses, check_limits, check_names, check_joint_list, *PHYSICS_CHECKS)
    return [finding for check in checks for finding in check(subject)]


def check_notes(subject: Subject) -> Iterator[Lint]:
    """One finding for each kind of thing that was left out or mended while reading the file."""
    found = subject.checked.notes if subject.checked is not None else ()
    for code in dict.fromkeys(note.code for note in found):
        notes = [note for note in found if note.code == code]
        level, consequence, fix = _NOTES[code]
        more = f" (and {len(notes) - 1} more like it)" if len(notes) > 1 else ""
        message = f"{notes[0].message}{more}: {consequence}"
        yield Lint(level=level, code=code, where=notes[0].where, message=message, fix=fix)


def check_guesses(subject: Subject) -> Iterator[Lint]:
    """Unmeasured numbers: guesses of a draft, or still marked as such in spec.toml."""
    by_code: dict[str, list[tuple[str, str]]] = {}
    for key, reason in _guesses(subject).items():
        field, _, joint = key.replace("passive ", "passive of ").partition(" of ")
        by_code.setdefault(_GUESSES[field][0], []).append((joint or field, reason))
    for code, entries in by_code.items():
        level, consequence, fix = next(row[1:] for row in _GUESSES.values() if row[0] == code)
        joints = list(dict.fromkeys(joint for joint, _ in entries))
        message = f"guessed for {len(joints)} of its parts ({entries[0][1]}): {consequence}"
        yield Lint(level=level, code=code, where=listed(joints), message=message, fix=f"{fix} in {SPEC_FILE}")


def _guesses(subject: Subject) -> dict[str, str]:
    robot = subject.robot
    if subject.checked is None:
        return {}
    spec_file = robot.model_path.parent / SPEC_FILE
    if not spec_file.is_file() or spec_file.stat().st_size > MAX_BYTES:
        draft = make_draft(subject.checked)
        return draft.guesses if draft.spec.joints == robot.spec.joints else {}
    return marked_guesses(spec_file.read_text(encoding="utf-8", errors="replace"))


def marked_guesses(text: str) -> dict[str, str]:
    """Find the lines of a spec file that still end in the mark of a guess, keyed as a draft keys them."""
    guesses: dict[str, str] = {}
    joint = ""
    for line in text.splitlines():
        name = re.match(r'name = "(.*?)"', line)
        joint = name.group(1) if name else joint
        key, _, reason = line.partition(GUESS_MARK)
        field = key.split("=")[0].strip()
        if reason and field == "floating":
            guesses["base.floating"] = reason
        elif reason and field in _GUESSES:
            guesses[f"{field} of {joint}"] = reason
    return guesses


def check_limits(subject: Subject) -> Iterator[Lint]:
    """Limits of the model file that the spec widens: the robot would hit its stops."""
    file = subject.file_model
    for joint in subject.robot.spec.joints:
        number = mujoco.mj_name2id(file, mujoco.mjtObj.mjOBJ_JOINT, joint.name)
        if number < 0 or not file.jnt_limited[number]:
            continue
        low, high = (float(x) for x in file.jnt_range[number])
        if joint.position[0] < low - LIMIT_SLACK or joint.position[1] > high + LIMIT_SLACK:
            message = (
                f"the spec allows [{joint.position[0]:.3f}, {joint.position[1]:.3f}], the model file only "
                f"[{low:.3f}, {high:.3f}]; the spec wins in simulation, the stops win on the robot"
            )
            fix = "make position in spec.toml no wider than the stops"
            yield Lint(level="warning", code="limits-differ", where=joint.name, message=message, fix=fix)


def check_names(subject: Subject) -> Iterator[Lint]:
    """Sites and shapes that the spec names and the model lacks."""
    spec, model = subject.robot.spec, subject.model
    site, geom = (mujoco.mjtObj.mjOBJ_SITE, "site"), (mujoco.mjtObj.mjOBJ_GEOM, "geom")
    wanted = [("imu", spec.imu, *site), ("end_effector", spec.end_effector, *site)]
    for key, name, kind, what in (*wanted, *(("feet", foot, *geom) for foot in spec.feet)):
        if name is not None and mujoco.mj_name2id(model, kind, name) < 0:
            message = f"the spec's {key} names the {what} {name!r}, which the model does not have"
            fix = f"correct {key} in {SPEC_FILE} or add the {what} to the model"
            yield Lint(level="error", code="unknown-name", where=key, message=message, fix=fix)


def check_joint_list(subject: Subject) -> Iterator[Lint]:
    """Joints of the model that the spec does not list."""
    model = subject.model
    known = subject.robot.spec.joint_names
    movable = np.isin(model.jnt_type, [int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)])
    names = [model.joint(int(number)).name for number in np.flatnonzero(movable)]
    passive = [name for name in names if name not in known]
    if passive and not any(key.startswith("passive ") for key in _guesses(subject)):
        message = f"{len(passive)} joints of the model are not in the spec: they swing freely"
        fix = "add a [[joint]] if a motor drives them"
        yield Lint(level="note", code="passive-joints", where=listed(passive), message=message, fix=fix)
