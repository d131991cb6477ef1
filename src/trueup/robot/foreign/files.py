"""Every file that a model names, found and read inside the folders the user allowed; the engine opens none itself.

`FileCollector` rewrites each reference to a flat name and keeps the bytes under it, so that what the engine gets is
one text and one table of contents. Nothing outside the model's folder (or the wider `root`) is ever opened.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from trueup.core.errors import TrueupError
from trueup.robot.foreign.safe_xml import MAX_ELEMENTS, MAX_XML_BYTES, XmlNode, check_tree, parse_xml, write_xml

MAX_FILE_BYTES = 64_000_000
MAX_TOTAL_BYTES = 192_000_000
MAX_INCLUDES = 64
MAX_INCLUDE_DEPTH = 8
MAX_STL_FACES = 200_000
_PICTURE = ("file", "grid", "content")  # how attributes begin that say where a texture's pictures are
_FOLDERS = ("meshdir", "texturedir", "assetdir", "strippath")
MESH_SUFFIXES = (".stl", ".obj", ".msh")
_ROS_FOLDERS = ("urdf", "urdfs", "robots", "xacro")  # where a ROS package keeps its URDF
_ROS_MESHES = ("meshes", "mesh", "assets")  # and its meshes
_ROS_DEPTH = 2  # folders between a URDF and the package.xml above it, at most


class Note(NamedTuple):
    """A part that was left out or repaired while reading; shown by inspection."""

    code: str
    where: str
    message: str


@dataclass(kw_only=True)
class FileCollector:
    """Files of a model, found and read.

    model   the model file
    root    a folder above it that its references may reach too; None: the model's folder, and of a URDF that lies in a
            ROS package also that package (`ros_folders`)
    """

    model: Path
    root: Path | None = None
    assets: dict[str, bytes] = field(default_factory=dict)  # by the flat name the rewritten model uses
    submodels: dict[str, bytes] = field(default_factory=dict)
    dropped_meshes: list[str] = field(default_factory=list)  # names of <mesh> whose file is not there
    notes: list[Note] = field(default_factory=list)
    _keys: dict[Path, str] = field(default_factory=dict)
    _xml_bytes: int = 0
    _includes: int = 0
    _elements: int = 0

    def __post_init__(self) -> None:
        self.folder = _real(self.model).parent
        if self.root is not None and not self.folder.is_relative_to(_real(self.root)):
            raise TrueupError(f"root {self.root} must be a folder above the model", file=self.model)
        is_urdf = self.model.suffix.lower() == ".urdf"
        wider = ros_folders(self.folder) if is_urdf and self.root is None else []
        self.allowed = [self.folder, *(wider if self.root is None else [_real(self.root)])]

    def read_xml(self, path: Path, place: str = "whole file") -> XmlNode:
        """Read one XML file of the model; `check_tree` looks at its elements once what is not used is gone."""
        data = _read(path, MAX_XML_BYTES - self._xml_bytes, self.model, place)
        self._xml_bytes += len(data)
        root = parse_xml(data, path)
        self._elements += sum(1 for _ in root.walk())
        if self._elements > MAX_ELEMENTS:
            raise root.error(f"has more than {MAX_ELEMENTS} elements with its included files")
        return root

    def expand_includes(self, node: XmlNode, stack: tuple[Path, ...] = ()) -> None:
        """Put the content of included files in the place of <include>."""
        children: list[XmlNode] = []
        for child in node.children:
            if child.tag != "include":
                self.expand_includes(child, stack)
                children.append(child)
                continue
            self._includes += 1
            if self._includes > MAX_INCLUDES or len(stack) >= MAX_INCLUDE_DEPTH:
                raise child.error(f"too many includes (at most {MAX_INCLUDES}, {MAX_INCLUDE_DEPTH} deep)")
            path = self.locate_needed(child, [self.folder, child.file.parent])
            if path in stack or path == _real(self.model):
                raise child.error(f"the file {child.attrs['file']!r} includes itself")
            part = self.read_xml(path, child.place)
            self.expand_includes(part, (*stack, path))
            children.extend(part.children)
        node.children = children

    def locate_needed(self, node: XmlNode, folders: list[Path]) -> Path:
        """Find the file that an element cannot do without."""
        text = node.attrs.get("file", "")
        path = self.locate(node, text, folders)
        if path is None:
            raise node.error(f"the file {text!r} does not exist in {self.folder}")
        return path

    def locate(self, node: XmlNode, text: str, folders: list[Path]) -> Path | None:
        """Find a reference in the first of `folders` that has it; refuse one that leaves the allowed folders."""
        name = text.replace("\\", "/")
        if not name.strip():
            raise node.error("names an empty file")
        if "://" in name or name.startswith("file:"):
            raise node.error(f"{text[:80]!r} is not a path in the model's folder; write a relative path")
        if name.startswith("/"):
            raise node.error(f"{text[:80]!r} is an absolute path; write it relative to the model, inside its folder")
        paths = [_real(folder / name) for folder in folders]
        if not all(self._is_allowed(path) for path in paths):
            raise node.error(
                f"{text[:80]!r} lies outside {self.allowed[-1]}, and only files inside are opened; if it belongs to "
                f"the robot, name a folder that holds both: `trueup robot init {self.model.name} --root FOLDER`"
            )
        return next((path for path in paths if os.path.isfile(path)), None)

    def _is_allowed(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self.allowed)

    def locate_package(self, text: str) -> Path | None:
        """Find `package://NAME/rest` below the allowed folders: with the package's name, or with less of the path."""
        parts = PurePosixPath(text.removeprefix("package://").replace("\\", "/")).parts
        if ".." in parts:
            return None
        for folder in reversed(self.allowed):
            for start in range(len(parts)):
                path = _real(folder.joinpath(*parts[start:]))
                if self._is_allowed(path) and os.path.isfile(path):
                    return path
        return None

    def add_mesh(self, path: Path | None, node: XmlNode, key: str) -> str:
        """Rewrite the reference of a mesh; return what is wrong with the file if the engine could not read it."""
        if path is None:
            return f"was not found below {self.allowed[-1]} (--root FOLDER widens the search)"
        if path.suffix.lower() not in MESH_SUFFIXES and "content_type" not in node.attrs:
            return f"is none of {', '.join(MESH_SUFFIXES)}, which is all that MuJoCo reads"
        name = self.add_asset(path, node)
        problem = _stl_problem(self.assets[name]) if path.suffix.lower() == ".stl" else ""
        if not problem:
            node.attrs[key] = name
        return problem

    def add_asset(self, path: Path, node: XmlNode) -> str:
        """Read a file and return the flat name under which the engine will find it."""
        if path in self._keys:
            return self._keys[path]
        left = MAX_TOTAL_BYTES - sum(map(len, self.assets.values()))
        data = _read(path, min(MAX_FILE_BYTES, left), node.file, node.place)
        key = self._keys[path] = self._key(path)
        self.assets[key] = data
        return key

    def _key(self, path: Path) -> str:
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", path.stem)[:64] or "file"
        suffix = re.sub(r"[^A-Za-z0-9.]", "", path.suffix)
        name, number = f"{stem}{suffix}", 1
        while name in self.assets or name in self.submodels:
            number += 1
            name = f"{stem}_{number}{suffix}"
        return name

    def add_submodel(self, node: XmlNode, depth: int = 0) -> None:
        """Read the model that <asset><model file=...> attaches, with all that it needs in turn."""
        if depth >= MAX_INCLUDE_DEPTH or len(self.submodels) >= MAX_INCLUDES:
            raise node.error("models attach models too deeply")
        path = self.locate_needed(node, [node.file.parent, self.folder])
        tree = self.read_xml(path, node.place)
        if tree.tag != "mujoco":
            raise tree.error("only MJCF can be attached")
        self.expand_includes(tree, (path,))
        check_tree(tree)
        collect_mjcf(self, tree, depth + 1)
        node.attrs.setdefault("name", path.stem)
        key = node.attrs["file"] = self._key(path)
        self.submodels[key] = write_xml(tree)[0].encode()


def ros_folders(folder: Path) -> list[Path]:
    """Folders outside that of a URDF which its ROS layout makes part of the robot.

    The package, where a package.xml marks it; without one `meshes` beside a folder named `urdf`. A link that leads out
    of the package is not followed.
    """
    for above in (folder, *folder.parents[:_ROS_DEPTH]):
        if os.path.isfile(above / "package.xml"):
            return [] if above == folder else [above]
    if folder.name.lower() not in _ROS_FOLDERS:
        return []
    beside = [folder.parent / name for name in _ROS_MESHES]
    return [path for path in beside if os.path.isdir(path) and _real(path) == path]


def collect_mjcf(files: FileCollector, root: XmlNode, depth: int = 0) -> None:
    """Rewrite every file reference of an MJCF tree (includes already expanded) to the collector's flat names."""
    dirs: dict[str, str] = {}  # taken from <compiler>; the last one wins
    for node in root.find_all("compiler"):
        dirs |= {key: node.attrs.pop(key) for key in _FOLDERS if key in node.attrs}
    for node in root.walk():
        if node.tag == "model" and "file" in node.attrs:
            files.add_submodel(node, depth)
            continue
        for key in [key for key in node.attrs if key.startswith("file")]:
            if key in node.attrs:  # a texture that lost one picture has lost all
                _collect_reference(files, node, key, dirs, depth)


def _collect_reference(files: FileCollector, node: XmlNode, key: str, dirs: dict[str, str], depth: int) -> None:
    text = node.attrs[key].replace("\\", "/")
    if dirs.get("strippath") == "true":
        text = text.rsplit("/", 1)[-1]
    kind = "texturedir" if node.tag == "texture" else "meshdir"
    folder = files.folder / dirs.get(kind, dirs.get("assetdir", "")).replace("\\", "/")
    path = files.locate(node, text, [folder])
    if node.tag in ("mesh", "texture", "hfield", "skin"):
        node.attrs.setdefault("name", PurePosixPath(text).stem)  # what the engine would take from the file's name
    if node.tag == "mesh" and depth == 0:
        problem = files.add_mesh(path, node, key)
        if problem:
            files.dropped_meshes.append(node.attrs["name"])
            del node.attrs[key]
            node.attrs["vertex"] = "0 0 0 1 0 0 0 1 0 0 0 1"  # a stand-in until the geoms that show it are removed
            files.notes.append(Note("mesh-dropped", node.place, f"mesh {text!r} {problem}"))
    elif path is not None:
        node.attrs[key] = files.add_asset(path, node)
    elif node.tag == "texture":
        node.attrs = {name: value for name, value in node.attrs.items() if not name.startswith(_PICTURE)}
        node.attrs.update(builtin="flat", width="8", height="8", rgb1="0.6 0.6 0.6")
        message = f"picture {text!r} does not exist; a plain grey one takes its place"
        files.notes.append(Note("texture-dropped", node.place, message))
    else:
        raise node.error(f"the file {text!r} does not exist in {folder}")


def _stl_problem(data: bytes) -> str:
    """Why MuJoCo cannot read an STL: it needs the binary form with at most 200000 faces; "" if it can."""
    faces = int.from_bytes(data[80:84], "little")
    if len(data) < 134 or len(data) != 84 + 50 * faces:
        text = data[:5] == b"solid"
        return "is an STL in text form; convert it to binary" if text else "is not a whole binary STL file"
    return f"has {faces} faces; MuJoCo reads at most {MAX_STL_FACES}" if faces > MAX_STL_FACES else ""


def _real(path: Path) -> Path:
    """Resolve links without opening anything; a circle of links stays as it is, and is no file."""
    return Path(os.path.realpath(path))


def _read(path: Path, limit: int, file: Path, place: str | None) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise TrueupError(f"{path.name!r} is not a regular file", file=file, place=place)
        if status.st_size > limit:
            message = f"{path.name!r} has {status.st_size} bytes; at most {limit} (more) are read of a model"
            raise TrueupError(message, file=file, place=place)
        with path.open("rb") as handle:
            return handle.read(limit + 1)[:limit]
    except FileNotFoundError:
        missing = "no such file" if path == file else f"names {path.name!r}, which is not there"
        raise TrueupError(missing, file=file, place=None if path == file else place) from None
    except (OSError, ValueError) as error:
        raise TrueupError(f"cannot be read: {error}", file=file, place=place) from None
