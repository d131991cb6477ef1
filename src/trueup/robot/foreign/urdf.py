"""URDF as MuJoCo should read it: the root link stays a body, meshes that cannot be read are left out with a note.

Left to itself MuJoCo melts the root link into the world (its mass vanishes), drops fixed links, ignores velocity
limits and knows no `package://`. The tree is changed before the engine sees it.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from pathlib import Path, PurePosixPath

import numpy as np

from trueup.core.errors import TrueupError
from trueup.robot.foreign.files import FileCollector, Note
from trueup.robot.foreign.safe_xml import MAX_DEPTH, XmlNode, check_tree

BALL_DENSITY = 2000.0  # kg/m3, between plastic and aluminium
TINY_MASS, TINY_INERTIA = 1e-5, 1e-12  # kg, kg m2: below, a link is a mere frame
_KEPT = {"link", "joint", "material", "mujoco"}
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_COMPILER = {"fusestatic": "false", "discardvisual": "false", "strippath": "false"}


def collect_urdf(files: FileCollector, root: XmlNode) -> dict[str, float]:
    """Change the tree in place for the engine and gather its meshes; return the joints' speed limits (rad/s, m/s).

    The engine keeps limits of position and effort itself.
    """
    _refuse_templates(root)
    root.children = [node for node in root.children if node.tag in _KEPT]
    for node in root.walk():
        node.children = [child for child in node.children if child.tag != "texture"]
    check_tree(root)
    _refuse_long_chains(root)
    folders = _set_compiler(root)
    for link in root.find_all("link"):
        _collect_link(files, link, folders)
    _name_shapes(root)
    return _speeds(files, root)


def _refuse_templates(root: XmlNode) -> None:
    for node in root.walk():
        if node.tag.startswith("xacro:") or any("${" in value for value in node.attrs.values()):
            raise node.error(f"is a xacro template; expand it first: `xacro {root.file.name} > robot.urdf`")


def _refuse_long_chains(root: XmlNode) -> None:
    """Bound the depth of the tree of links: the engine walks it by recursion."""
    parent: dict[str, str] = {}
    for joint in root.find_all("joint"):
        child, above = joint.find("child"), joint.find("parent")
        if child is not None and above is not None:
            parent[child.attrs.get("link", "")] = above.attrs.get("link", "")
    hanging, level = set(parent), set(parent.values()) - set(parent)
    for _ in range(MAX_DEPTH):
        level = {link for link in hanging if parent[link] in level}
        hanging -= level
    if hanging:
        message = f"more than {MAX_DEPTH} links hang on each other (or a loop of links)"
        raise TrueupError(message, file=root.file, place=f"link {min(hanging)!r}")


def _set_compiler(root: XmlNode) -> list[str]:
    """Put our compiler settings after the user's; return the mesh folders that the file names."""
    extension = XmlNode("mujoco", {}, root.file, root.line)
    attrs: dict[str, str] = {}
    for section in root.find_all("mujoco"):
        for node in section.children:
            if node.tag == "compiler":
                attrs.update(node.attrs)
            else:
                extension.children.append(node)
    folders = [attrs.pop(key) for key in ("meshdir", "assetdir") if key in attrs]
    attrs.pop("texturedir", None)
    extension.children.append(XmlNode("compiler", attrs | _COMPILER, root.file, root.line))
    root.children = [node for node in root.children if node.tag != "mujoco"] + [extension]
    return folders


def _collect_link(files: FileCollector, link: XmlNode, folders: list[str]) -> None:
    link.children = [shape for shape in link.children if _collect_mesh(files, link, shape, folders)]
    _mend_inertial(files, link)


def _collect_mesh(files: FileCollector, link: XmlNode, shape: XmlNode, folders: list[str]) -> bool:
    """Gather the mesh of a shape, if it has one; False if it cannot be read."""
    geometry = shape.find("geometry") if shape.tag in ("visual", "collision") else None
    mesh = geometry.find("mesh") if geometry is not None else None
    if mesh is None:
        return True
    text = mesh.attrs.get("filename", "")
    problem = files.add_mesh(_find_mesh(files, mesh, text, folders), mesh, "filename")
    if problem:
        where = f"line {mesh.line}, link {link.attrs.get('name')!r}"
        files.notes.append(Note(f"{shape.tag}-mesh-dropped", where, f"mesh {text!r} {problem}"))
    return not problem


def _mend_inertial(files: FileCollector, link: XmlNode) -> None:
    """Leave out an <inertial> of (near) zeros; give a mass whose inertia no body can have that of a solid ball."""
    inertial = link.find("inertial")
    parts = (inertial.find("mass"), inertial.find("inertia")) if inertial is not None else (None, None)
    if inertial is None or parts[0] is None or parts[1] is None:
        return
    node = parts[1]
    try:
        mass = float(parts[0].attrs.get("value", ""))
        xx, xy, xz, yy, yz, zz = (float(node.attrs.get(key, "0")) for key in _MOMENTS)
    except ValueError:  # the engine says what is wrong
        return
    lowest = float(np.linalg.eigvalsh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))[0])
    if lowest > TINY_INERTIA or mass < 0.0:
        return
    if mass < TINY_MASS:
        link.children.remove(inertial)
        return
    radius = (3.0 * mass / (4.0 * math.pi * BALL_DENSITY)) ** (1.0 / 3.0)
    ball = f"{0.4 * mass * radius**2:.9g}"
    node.attrs.update(ixx=ball, iyy=ball, izz=ball, ixy="0", ixz="0", iyz="0")
    size = f"its inertia has the eigenvalue {lowest:.2g} at {mass:.4g} kg, which no body has"
    message = f"{size}; a solid ball of {radius:.3f} m takes its place"
    files.notes.append(Note("inertia-replaced", f"line {node.line}, link {link.attrs.get('name')!r}", message))


def _find_mesh(files: FileCollector, mesh: XmlNode, text: str, folders: list[str]) -> Path | None:
    if text.startswith(("package://", "model://")):
        return files.locate_package(text.replace("model://", "package://"))
    name = text.removeprefix("file://")
    path = files.locate(mesh, name, [files.folder])
    if path is None and folders:  # MuJoCo's own rule: the file's bare name in the folder that <compiler> names
        path = files.locate(mesh, PurePosixPath(name).name, [files.folder / folder for folder in folders])
    return path


def _name_shapes(root: XmlNode) -> None:
    """Give every shape a name of its own, so that a spec can list feet and contacts."""
    count: Counter[str] = Counter()
    for link in root.find_all("link"):
        for shape in link.children:
            if shape.tag in ("visual", "collision"):
                stem = f"{link.attrs.get('name', 'link')}_{shape.tag}"
                count[stem] += 1
                shape.attrs["name"] = stem if count[stem] == 1 else f"{stem}_{count[stem]}"


def _speeds(files: FileCollector, root: XmlNode) -> dict[str, float]:
    speeds = {}
    for joint in root.find_all("joint"):
        name, mimic, limit = joint.attrs.get("name", ""), joint.find("mimic"), joint.find("limit")
        if mimic is not None:
            message = f"follows joint {mimic.attrs.get('joint')!r} in the URDF (mimic); here it moves on its own"
            files.notes.append(Note("mimic-ignored", f"joint {name!r}", message))
        with contextlib.suppress(ValueError):
            speed = float(limit.attrs.get("velocity", "") if limit is not None else "")
            if 0.0 < speed < math.inf:
                speeds[name] = speed
    return speeds
