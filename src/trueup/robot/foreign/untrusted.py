"""Reads an untrusted model file: gives an engine model or a TrueupError with file and place, in bounded time.

Three checks, one after the other: a bounded XML tree with every number checked (`safe_xml`), every referenced file
found and read inside the allowed folder (`files`, `urdf`), and a first compilation in a process of its own with
limits (`compile_guard`). Only then is the text parsed here. A model whose files are small is refused after 1.5 s of
processor time or 400 MB; meshes earn more, since reading them takes both. Time on the clock counts only against a trial
that waits without computing: other programs may take the processor.
"""

from __future__ import annotations

import logging
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import mujoco

from trueup.core.errors import TrueupError
from trueup.core.guarded import GuardedAnswer, GuardLimits
from trueup.robot.foreign.compile_guard import GUARD, REPAIRS, CompileJob, build
from trueup.robot.foreign.files import FileCollector, Note, collect_mjcf
from trueup.robot.foreign.safe_xml import XmlNode, check_tree, write_xml
from trueup.robot.foreign.urdf import collect_urdf

SECONDS = 1.5
SECONDS_PER_ASSET_MB = 0.1
MEGABYTES = 400
MEGABYTES_PER_ASSET_MB = 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CheckedModel:
    """A model that passed: its engine spec, its rewritten tree, its files, and the joint speeds that a URDF allows."""

    path: Path
    spec: mujoco.MjSpec
    tree: XmlNode
    files: FileCollector
    urdf_speeds: dict[str, float]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Parts that were left out or repaired."""
        return tuple(self.files.notes)

    @property
    def is_urdf(self) -> bool:
        return self.tree.tag == "robot"

    @property
    def urdf_mass(self) -> float:
        """What the links of a URDF weigh together by their own account (kg)."""
        masses = [node.attrs.get("value", "") for node in self.tree.walk() if node.tag == "mass"]
        return sum(float(mass) for mass in masses if mass.strip())


def read_model(path: Path, root: Path | None = None) -> CheckedModel:
    """Read an untrusted model file with all files that it needs, checked."""
    GUARD.process.start()
    start = time.thread_time()
    files = FileCollector(model=path, root=root)
    tree = files.read_xml(path)
    speeds: dict[str, float] = {}
    if tree.tag == "mujoco":
        files.expand_includes(tree)
        check_tree(tree)
        collect_mjcf(files, tree)
        _name_parts(tree)
    elif tree.tag == "robot":
        speeds = collect_urdf(files, tree)
    else:
        raise tree.error(f"a model starts with <mujoco> (MJCF) or <robot> (URDF), this file with <{tree.tag}>")
    spec = _build_checked(files, tree, start)
    return CheckedModel(path=path, spec=spec, tree=tree, files=files, urdf_speeds=speeds)


def _build_checked(files: FileCollector, tree: XmlNode, start: float) -> mujoco.MjSpec:
    xml, origin = write_xml(tree)
    asset_mb = sum(len(data) for data in files.assets.values()) / 1e6
    job = CompileJob(
        xml=xml,
        assets=files.assets,
        submodels=files.submodels,
        dropped_meshes=files.dropped_meshes,
        urdf=tree.tag == "robot",
    )
    limits = GuardLimits(
        cpu_s=max(SECONDS - (time.thread_time() - start), SECONDS / 3) + SECONDS_PER_ASSET_MB * asset_mb,
        memory_bytes=(MEGABYTES + int(MEGABYTES_PER_ASSET_MB * asset_mb)) << 20,
    )
    answer = _try_with_repairs(job, limits, files)
    if answer.kind != "ok":
        raise _as_error(answer, limits, files.model, origin)
    for note in files.notes:
        _log.info("%s, %s: %s", files.model, note.where, note.message)
    try:
        with quiet_engine():
            return build(job)
    except (ValueError, mujoco.FatalError) as error:
        raise _as_error(GuardedAnswer(kind="error", message=str(error)), limits, files.model, origin) from None


def _try_with_repairs(job: CompileJob, limits: GuardLimits, files: FileCollector) -> GuardedAnswer:
    """Try the model; where the engine names a change that it needs, apply and report it."""
    spent = 0.0
    while True:
        answer = GUARD.try_job(job, limits)
        spent += answer.cpu_s
        repair = next((name for name, (words, _) in REPAIRS.items() if words in answer.message), None)
        if answer.kind != "error" or repair is None or repair in job.repairs or spent > limits.cpu_s:
            return answer
        job.repairs.append(repair)
        message = f"{REPAIRS[repair][1]} (MuJoCo: {' '.join(answer.message.split())})"
        files.notes.append(Note(f"repaired-{repair}", _element(answer.message), message))


def _as_error(answer: GuardedAnswer, limits: GuardLimits, model: Path, origin: list[XmlNode]) -> TrueupError:
    refused = "MuJoCo did not finish compiling this model in {}; simplify its meshes or counts"
    endings = {
        "cpu_time": refused.format(f"{limits.cpu_s:.1f} s"),
        "wall_time": refused.format(f"{limits.wall_s:.0f} s on the clock"),
        "memory": f"compiling this model needs more than {limits.memory_bytes >> 20} MB; lower its declared sizes",
        "crash": f"MuJoCo crashed on this model ({answer.message}); the file is malformed or too deep",
    }
    if answer.kind in endings:
        return TrueupError(endings[answer.kind], file=model, place="compilation")
    message = " ".join(answer.message.split())
    file, place = model, _element(message)
    found = re.search(r"line (\d+)", message)
    if found and int(found.group(1)) < len(origin) and "model file" not in message:
        node = origin[int(found.group(1))]
        file, place = node.file, node.place
        message = message[: found.start()].rstrip(" ,:(") + message[found.end() :]
    return TrueupError(f"MuJoCo refuses this model: {message}", file=file, place=place)


def _element(message: str) -> str:
    """The part of the engine's message that names the element, e.g. `name 'hip', id = 4`."""
    found = re.search(r"(?:Element )?name '([^']*)'", message)
    return f"element {found.group(1)!r}" if found else "model"


def _name_parts(root: XmlNode) -> None:
    """Give bodies, joints and geoms of an MJCF names where it has none, so that a spec can list them."""
    taken = {(node.tag, node.attrs["name"]) for node in root.walk() if "name" in node.attrs}
    count: Counter[str] = Counter()

    def name_below(node: XmlNode, body: str) -> None:
        for child in node.children:
            if child.tag in ("body", "geom", "joint") and not child.attrs.get("name"):
                stem = f"{body}_{child.tag}"
                count[stem] += 1
                while (child.tag, f"{stem}{count[stem]}") in taken:
                    count[stem] += 1
                child.attrs["name"] = f"{stem}{count[stem]}"
            if child.tag not in ("composite", "flexcomp"):  # their parts are templates, which bear no names
                name_below(child, child.attrs["name"] if child.tag == "body" else body)

    for world in root.find_all("worldbody"):
        name_below(world, "world")


@contextmanager
def quiet_engine() -> Iterator[None]:
    """Keep the engine's warnings off the terminal and its log file off the disk."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(_log.debug)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # how the compiler warns
            yield
    finally:
        mujoco.set_mju_user_warning(before)
