"""URDF as MuJoCo should read it: the root link stays a body, meshes that cannot be read are left out with a note.

Left to itself MuJoCo melts the root link into the world (its mass vanishes), drops fixed links, ignores velocity
limits and knows no `package://`. The tree is changed before the engine sees it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from trueup.core.errors import TrueupError
from trueup.robot.foreign.files import FileCollector, Note
from trueup.robot.foreign.safe_xml import MAX_DEPTH, Node, check_tree

BALL_DENSITY = 2000.0  # kg/m3, between plastic and aluminium
TINY_MASS, TINY_INERTIA = 1e-5, 1e-12  # kg, kg m2: below, a link is a mere frame
_KEPT = {"link", "joint", "material", "mujoco"}
_COMPILER = {"fusestatic": "false", "discardvisual": "false", "strippath": "false"}


@dataclass(frozen=True, kw_only=True)
class UrdfJoint:
    """What the engine does not keep of a joint: limits of effort and speed, None where the file says nothing."""

    effort: float | None
    velocity: float | None
    mimic: bool


def collect_urdf(files: FileCollector, root: Node) -> dict[str, UrdfJoint]:
    """Change the tree in place for the engine, gather its meshes, and return the joints' limits by name."""
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
    return {
        joint.attrs.get("name", ""): _joint_limits(files, joint)
        for joint in root.find_all("joint")
        if joint.attrs.get("type") != "fixed"
    }


def _refuse_templates(root: Node) -> None:
    for node in root.walk():
        if node.tag.startswith("xacro:") or any("${" in value for value in node.attrs.values()):
            raise node.error(f"is a xacro template; expand it first: `xacro {root.file.name} > robot.urdf`")


def _refuse_long_chains(root: Node) -> None:
    """Bound the depth of the tree of links: the engine walks it by recursion."""
    parent: dict[str, str] = {}
    for joint in root.find_all("joint"):
        child, above = joint.find("child"), joint.find("parent")
        if child is not None and above is not None:
            parent[child.attrs.get("link", "")] = above.attrs.get("link", "")
    depth: dict[str, int] = {}
    for link in parent:
        chain: list[str] = []
        at = link
        while at in parent and at not in depth and len(chain) <= MAX_DEPTH:
            chain.append(at)
            at = parent[at]
        for number, name in enumerate(reversed(chain), depth.get(at, 0) + 1):
            depth[name] = number
        if len(chain) > MAX_DEPTH or depth[link] > MAX_DEPTH:
            raise TrueupError(
                f"more than {MAX_DEPTH} links hang on each other (or a loop of links)",
                file=root.file,
                place=f"link {link!r}",
            )


def _set_compiler(root: Node) -> list[str]:
    """Put our compiler settings after the user's; return the mesh folders that the file names."""
    extension = Node("mujoco", {}, root.file, root.line)
    attrs: dict[str, str] = {}
    for section in root.find_all("mujoco"):
        for node in section.children:
            if node.tag == "compiler":
                attrs.update(node.attrs)
            else:
                extension.children.append(node)
    folders = [attrs.pop(key) for key in ("meshdir", "assetdir") if key in attrs]
    attrs.pop("texturedir", None)
    extension.children.append(Node("compiler", attrs | _COMPILER, root.file, root.line))
    root.children = [node for node in root.children if node.tag != "mujoco"] + [extension]
    return folders


def _collect_link(files: FileCollector, link: Node, folders: list[str]) -> None:
    kept = []
    for shape in link.children:
        mesh = _mesh(shape) if shape.tag in ("visual", "collision") else None
        if mesh is None or _collect_mesh(files, mesh, folders, shape.tag, f"link {link.attrs.get('name')!r}"):
            kept.append(shape)
    link.children = kept
    _mend_inertial(files, link)


def _mend_inertial(files: FileCollector, link: Node) -> None:
    """Leave out an <inertial> of (near) zeros; give a mass whose inertia no body can have that of a solid ball."""
    inertial = link.find("inertial")
    mass, values = _inertial_numbers(inertial)
    if inertial is None or mass is None or values is None:
        return
    xx, xy, xz, yy, yz, zz = values
    lowest = float(np.linalg.eigvalsh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))[0])
    if lowest > TINY_INERTIA or mass < 0.0:
        return
    if mass < TINY_MASS:
        link.children.remove(inertial)
    else:
        radius = (3.0 * mass / (4.0 * math.pi * BALL_DENSITY)) ** (1.0 / 3.0)
        ball = f"{0.4 * mass * radius**2:.9g}"
        node = inertial.find("inertia")
        assert node is not None
        node.attrs.update(ixx=ball, iyy=ball, izz=ball, ixy="0", ixz="0", iyz="0")
        message = (
            f"its inertia has the eigenvalue {lowest:.2g} at {mass:.4g} kg, which no body has; a solid ball of "
            f"{radius:.3f} m takes its place"
        )
        where = f"line {node.line}, link {link.attrs.get('name')!r}"
        files.notes.append(Note(code="inertia-replaced", where=where, message=message))


def _inertial_numbers(inertial: Node | None) -> tuple[float | None, list[float] | None]:
    mass = inertial.find("mass") if inertial is not None else None
    inertia = inertial.find("inertia") if inertial is not None else None
    if mass is None or inertia is None:
        return None, None
    try:
        values = [float(inertia.attrs.get(key, "0")) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        return float(mass.attrs.get("value", "")), values
    except ValueError:
        return None, None


def _mesh(shape: Node) -> Node | None:
    geometry = shape.find("geometry")
    return geometry.find("mesh") if geometry is not None else None


def _collect_mesh(files: FileCollector, mesh: Node, folders: list[str], kind: str, where: str) -> bool:
    text = mesh.attrs.get("filename", "")
    problem = files.add_mesh(_find_mesh(files, mesh, text, folders), mesh, "filename")
    if problem:
        note = Note(code=f"{kind}-mesh-dropped", where=f"line {mesh.line}, {where}", message=f"mesh {text!r} {problem}")
        files.notes.append(note)
    return not problem


def _find_mesh(files: FileCollector, mesh: Node, text: str, folders: list[str]) -> Path | None:
    if text.startswith(("package://", "model://")):
        return files.locate_package(text.replace("model://", "package://"))
    name = text.removeprefix("file://")
    path = files.locate(mesh, name, [files.folder])
    if path is None and folders:  # MuJoCo's own rule: the file's bare name in the folder that <compiler> names
        path = files.locate(mesh, PurePosixPath(name).name, [files.folder / folder for folder in folders])
    return path


def _name_shapes(root: Node) -> None:
    """Give every shape a name of its own, so that a spec can list feet and contacts."""
    count: Counter[str] = Counter()
    for link in root.find_all("link"):
        for shape in link.children:
            if shape.tag in ("visual", "collision"):
                stem = f"{link.attrs.get('name', 'link')}_{shape.tag}"
                count[stem] += 1
                shape.attrs["name"] = stem if count[stem] == 1 else f"{stem}_{count[stem]}"


def _joint_limits(files: FileCollector, joint: Node) -> UrdfJoint:
    limit = joint.find("limit")
    values = limit.attrs if limit is not None else {}
    mimic = joint.find("mimic")
    if mimic is not None:
        message = f"follows joint {mimic.attrs.get('joint')!r} in the URDF (mimic); here it moves on its own"
        files.notes.append(Note(code="mimic-ignored", where=f"joint {joint.attrs.get('name')!r}", message=message))
    return UrdfJoint(
        effort=_positive(values.get("effort")), velocity=_positive(values.get("velocity")), mimic=mimic is not None
    )


def _positive(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0.0 < value < math.inf else None
