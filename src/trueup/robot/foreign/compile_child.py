"""The far side of `compile_guard`: a process that imports the engine once and forks for every model it tries.

MuJoCo may crash, hang or allocate without bound on hostile input. Each trial runs in a fork with limits on memory,
processor time, wall-clock time and files, in a folder that no longer exists (the engine's log file has nowhere to go).
A request is a length-prefixed JSON header followed by the bytes it announces; an answer is length-prefixed JSON.
"""

from __future__ import annotations

import json
import math
import os
import resource
import select
import signal
import struct
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO, NamedTuple

import mujoco
import numpy as np

# What the engine's complaint tells us to change, and the name of the change.
REPAIRS = {"balanceinertia": "balance", "larger than mjMINVAL": "bound", "inertia to shell": "shell"}
MASS_FLOOR, INERTIA_FLOOR = 1e-5, 1e-7  # kg, kg m2

_LENGTH = struct.Struct(">I")


@dataclass(kw_only=True)
class Job:
    """One model to try, as text and bytes; nothing in it is a path that leads anywhere."""

    xml: str
    assets: dict[str, bytes] = field(default_factory=dict)
    submodels: dict[str, bytes] = field(default_factory=dict)
    dropped_meshes: list[str] = field(default_factory=list)
    urdf: bool = False
    repairs: list[str] = field(default_factory=list)  # of REPAIRS
    seconds: float = 1.5  # of processor time: a busy machine must not refuse a good model
    wall_seconds: float = 60.0  # for a trial that waits for ever without computing
    megabytes: int = 400


@dataclass(kw_only=True)
class Verdict:
    """How a trial ended: kind is ok, error (the engine refused), crash, timeout or memory.

    seconds  processor time that it took
    """

    kind: str
    message: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0


def build(job: Job) -> mujoco.MjSpec:
    """Parse the job's text and make the same changes in the trial and in earnest."""
    spec = mujoco.MjSpec.from_string(job.xml, include=job.submodels, assets=job.assets)
    if "balance" in job.repairs:
        spec.compiler.balanceinertia = True
    if "bound" in job.repairs:
        spec.compiler.boundmass, spec.compiler.boundinertia = MASS_FLOOR, INERTIA_FLOOR
    if "shell" in job.repairs:
        for mesh in spec.meshes:
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    for name in job.dropped_meshes:
        _drop_mesh(spec, name)
    if job.urdf:
        for body in spec.bodies:
            _finish_urdf_body(body)
        _exclude_neighbours(spec)
    return spec


def _drop_mesh(spec: mujoco.MjSpec, name: str) -> None:
    for geom in [geom for geom in spec.geoms if geom.meshname == name]:
        body = geom.parent
        if not body.explicitinertial and (geom.contype or geom.conaffinity or geom.mass > 0):
            raise ValueError(
                f"body {body.name!r} takes its mass from mesh {name!r}, whose file cannot be read"
            )
        spec.delete(geom)
    mesh = spec.mesh(name)
    if mesh is not None:
        spec.delete(mesh)


def _finish_urdf_body(body: mujoco.MjsBody) -> None:
    """A link without <inertial> has no mass (its shapes would give it one); an IMU link becomes a site."""
    if not body.explicitinertial and not body.joints and body.name != "world":
        for geom in body.geoms:
            geom.density = 0.0
    if "imu" in body.name.lower() and not body.sites:
        body.add_site(name=body.name)


def _exclude_neighbours(spec: mujoco.MjSpec) -> None:
    """Let no part collide with the link that carries it, as the engine does itself unless that link is bolted."""
    for body in spec.bodies:
        if body.name == "world" or not body.joints:
            continue
        above = body.parent
        while above.name != "world" and not above.joints:
            spec.add_exclude(bodyname1=above.name, bodyname2=body.name)
            above = above.parent


def try_model(job: Job) -> Verdict:
    """Parse, compile and evaluate the model once, in this process."""
    try:
        spec = build(job)
        spec.compiler.usethread = False  # thread stacks would count against the memory limit
        model = spec.compile()
        field_name = _non_finite(model)
        if field_name:
            return Verdict(
                kind="error", message=f"numbers overflow: {field_name} is not finite after compilation"
            )
        mujoco.mj_forward(model, mujoco.MjData(model))
        return Verdict(kind="ok")
    except MemoryError:
        return Verdict(kind="memory")
    except Exception as error:
        text = str(error)
        return Verdict(kind="memory" if "alloc" in text.lower() else "error", message=text)


def _non_finite(model: mujoco.MjModel) -> str:
    for name in _float_fields():
        value = getattr(model, name)
        if not np.isfinite(value).all():
            return name
    return ""


_FIELDS: list[str] = []


def _float_fields() -> list[str]:
    """Names of the model's arrays of floats, found once on an empty model."""
    if not _FIELDS:
        model = mujoco.MjSpec().compile()
        for name in dir(model):
            value = None if name.startswith("_") else getattr(model, name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                _FIELDS.append(name)
    return _FIELDS


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until the other side closes."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
    _float_fields()
    while (header := _receive(source)) is not None:
        job = _read_job(header, source)
        verdict = _try_in_fork(job)
        del job
        answer = json.dumps(asdict(verdict)).encode()
        sink.write(_LENGTH.pack(len(answer)) + answer)
        sink.flush()


def _receive(source: BinaryIO) -> dict[str, Any] | None:
    prefix = source.read(_LENGTH.size)
    if len(prefix) < _LENGTH.size:
        return None
    header: dict[str, Any] = json.loads(source.read(_LENGTH.unpack(prefix)[0]))
    return header


def _read_job(header: dict[str, Any], source: BinaryIO) -> Job:
    xml = source.read(header.pop("xml")).decode()
    assets = {name: source.read(size) for name, size in header.pop("assets").items()}
    submodels = {name: source.read(size) for name, size in header.pop("submodels").items()}
    return Job(xml=xml, assets=assets, submodels=submodels, **header)


def _try_in_fork(job: Job) -> Verdict:
    before_bytes = _memory_pages().own * resource.getpagesize()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_limited(job, writer)
    os.close(writer)
    answer, in_time = _read_until(reader, time.monotonic() + job.wall_seconds)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    os.close(reader)
    _, status, usage = os.wait4(child, 0)
    verdict = judge_answer(answer, in_time, status)
    verdict.seconds = usage.ru_utime + usage.ru_stime
    verdict.megabytes = max(0.0, (usage.ru_maxrss * 1024 - before_bytes) / 2**20)
    return verdict


def _run_limited(job: Job, writer: int) -> None:
    """In the fork: take the limits, try, answer, and leave without running anyone's exit handlers."""
    try:
        used = _memory_pages().space * resource.getpagesize()
        cpu = math.ceil(job.seconds) + 1  # in whole seconds only: the timer is the sharper limit
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
        resource.setrlimit(resource.RLIMIT_AS, (used + job.megabytes * 2**20,) * 2)
        # its signal keeps the default action, which ends the process even inside a C loop
        signal.setitimer(signal.ITIMER_PROF, job.seconds)
        os.write(writer, json.dumps(asdict(try_model(job))).encode()[:60_000])
    finally:
        os._exit(0)


class _Pages(NamedTuple):
    """Pages of address space, and of memory that a fork inherits (those of files are mapped anew when touched)."""

    space: int
    own: int


def _memory_pages() -> _Pages:
    with open("/proc/self/statm") as file:
        space, resident, shared = (int(word) for word in file.read().split()[:3])
    return _Pages(space, resident - shared)


def _read_until(reader: int, deadline: float) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return b"", False
        part = os.read(reader, 65536)
        if not part:
            return b"".join(parts), True
        parts.append(part)


def judge_answer(answer: bytes, in_time: bool, status: int) -> Verdict:
    """What the fork said, or how it died."""
    if not in_time:
        return Verdict(kind="timeout", message="wall clock")
    try:
        return Verdict(**json.loads(answer))
    except (ValueError, TypeError):
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGXCPU):
            return Verdict(kind="timeout")
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {status}"
        return Verdict(kind="crash", message=name)


def main() -> None:
    """Serve on the standard streams; the engine's chatter goes nowhere."""
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    serve(sys.stdin.buffer, sink)
