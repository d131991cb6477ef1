"""From a bare model file to a robot folder: model.xml, its assets, and a spec.toml to edit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import mujoco

from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.robot.drafts.draft import Draft, make_draft
from trueup.robot.foreign.files import Note
from trueup.robot.foreign.safe_xml import XmlNode, parse_xml, write_xml
from trueup.robot.foreign.untrusted import CheckedModel, quiet_engine, read_model
from trueup.robot.inspection.lints import GUESS_MARK
from trueup.robot.load import SPEC_FILE, load_robot, zoo_names
from trueup.robot.model import compile_model
from trueup.robot.spec import spec_to_toml

MODEL_FILE = "model.xml"
ASSET_FOLDER = "assets"
_SPEC_OWNS = {"actuator", "keyframe"}  # gains and pose: the spec has them, and one truth is enough


def init_robot(path: Path, out: Path, root: Path | None = None, force: bool = False) -> Path:
    """Write a robot folder for an MJCF or URDF file and return it; `load_robot(out)` works from then on.

    root   a folder above the model that its meshes may be read from; None: the model's own folder, and the ROS
           package that a URDF lies in
    force  write into a folder that already holds files
    """
    if str(path) in zoo_names():
        raise TrueupError(f"robot {str(path)!r} is built in: use its name; a model file (.urdf, .xml) begins another")
    _claim(out, force)
    checked = read_model(path, root)
    draft = make_draft(checked)
    tree = _model_tree(checked)
    submodels = {name: parse_xml(data, path) for name, data in checked.files.submodels.items()}
    for part in (tree, *submodels.values()):
        _point_to_assets(part, checked)
    for name, data in checked.files.assets.items():
        write_atomic(out / ASSET_FOLDER / name, data)
    for name, part in submodels.items():
        write_atomic(out / name, write_xml(part)[0] + "\n")
    write_atomic(out / MODEL_FILE, write_xml(tree)[0] + "\n")
    write_atomic(out / SPEC_FILE, spec_text(draft, checked.notes))
    compile_model(load_robot(out))
    return out


def _claim(out: Path, force: bool) -> None:
    try:
        taken = out.exists() and (not out.is_dir() or any(out.iterdir()))
    except OSError as error:
        raise TrueupError(f"cannot look into the folder: {error}", file=out) from None
    if taken and not (force and out.is_dir()):
        raise TrueupError("exists and is not empty; choose another folder, or pass --force to write into it", file=out)


def _model_tree(checked: CheckedModel) -> XmlNode:
    """The MJCF to write: the user's own text where it is MJCF, the engine's translation of a URDF."""
    if not checked.is_urdf and not checked.files.dropped_meshes:
        tree = checked.tree
    else:
        try:
            with quiet_engine():
                checked.spec.compile()
                tree = parse_xml(checked.spec.to_xml().encode(), checked.path)
        except (ValueError, mujoco.FatalError) as error:
            raise TrueupError(f"MuJoCo cannot write this model as MJCF: {error}", file=checked.path) from None
    tree.children = [node for node in tree.children if node.tag not in _SPEC_OWNS]
    for section in tree.find_all("sensor"):
        section.children = [node for node in section.children if "actuator" not in node.attrs]
    return tree


def _point_to_assets(tree: XmlNode, checked: CheckedModel) -> None:
    for node in tree.walk():
        for key, name in node.attrs.items():
            if key.startswith("file") and name in checked.files.assets:
                node.attrs[key] = f"{ASSET_FOLDER}/{name}"


def spec_text(draft: Draft, notes: tuple[Note, ...] = ()) -> str:
    """The drafted spec as TOML, every guessed number marked; delete a mark when you have entered the true number."""
    spec = msgspec.structs.replace(draft.spec, model=MODEL_FILE)
    lines = ["# Drafted. Numbers marked 'guessed' are not in the model file: replace them, then delete the mark."]
    for key, reason in draft.guesses.items():
        if key.startswith("passive "):
            lines.append(_comment(f"joint {key.removeprefix('passive ')!r}: {reason}"))
    for code, number in Counter(note.code for note in notes).items():
        first = next(note for note in notes if note.code == code)
        lines.append(_comment(f"{code}, {number} times, first at {first.where}: {first.message}"))
    joint = ""
    for line in spec_to_toml(spec).splitlines():
        field, _, value = line.partition(" = ")
        joint = msgspec.json.decode(value, type=str) if field == "name" else joint
        guess = draft.guesses.get("base.floating" if field == "floating" else f"{field} of {joint}")
        lines.append(f"{line}  {GUESS_MARK}{guess}" if guess and value else line)
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    """One comment line, whatever names a stranger's file put into the text."""
    return "# " + "".join(letter if letter.isprintable() else "?" for letter in text)
