"""The first compilation of an untrusted model, in the guarded process, and the changes made to a model on the way.

The engine may crash, hang or allocate without bound on hostile input. Answers are kept by content, so that a robot is
tried once.
"""

from __future__ import annotations

import re

import msgspec
import mujoco
import numpy as np

from trueup.core.arrays import sha256_of
from trueup.core.guarded import GuardedAnswer, GuardedProcess, GuardLimits

MASS_FLOOR, INERTIA_FLOOR = 1e-5, 1e-7  # kg, kg m2
_BOUND = f"a moving body has no mass; every body got at least {MASS_FLOOR:g} kg and {INERTIA_FLOOR:g} kg m2"
_BALANCE = "an inertia breaks the triangle inequality A + B >= C; such inertias were balanced"
_SHELL = "a mesh encloses no volume; meshes count as thin shells where a mass is taken from them"
# Name of a change -> the words of the engine's complaint that ask for it, and what is said about it.
REPAIRS = {
    "balance": ("balanceinertia", _BALANCE),
    "bound": ("larger than mjMINVAL", _BOUND),
    "shell": ("inertia to shell", _SHELL),
}
_KEPT_ANSWERS = 256


class CompileJob(msgspec.Struct, kw_only=True):
    """One model to try, as text and bytes; nothing in it is a path that leads anywhere."""

    xml: str
    assets: dict[str, bytes] = {}
    submodels: dict[str, bytes] = {}
    dropped_meshes: list[str] = []
    urdf: bool = False
    repairs: list[str] = []  # of REPAIRS


class CompileGuard:
    """Compiles models in a guarded process and remembers the results."""

    def __init__(self) -> None:
        self.process = GuardedProcess(f"{__name__}:try_model")
        self._answers: dict[str, GuardedAnswer] = {}

    def try_job(self, job: CompileJob, limits: GuardLimits) -> GuardedAnswer:
        """Try the job, or return the answer of an equal one."""
        key = sha256_of([msgspec.msgpack.encode((job, limits.memory_bytes))])
        answer = self._answers.get(key)
        if answer is None:
            answer = self.process.ask(job, limits)
            if not answer.kind.endswith("_time"):  # a busy machine may have more time later
                if len(self._answers) >= _KEPT_ANSWERS:
                    self._answers.pop(next(iter(self._answers)), None)
                self._answers[key] = answer
        return answer


def build(job: CompileJob) -> mujoco.MjSpec:
    """Parse the job's text and apply its changes, the same in the trial and outside."""
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
            raise ValueError(f"body {body.name!r} takes its mass from mesh {name!r}, whose file cannot be read")
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


def try_model(request: dict[str, object]) -> None:
    """Parse, compile and evaluate the model once; called in the guarded process, which reports what is raised."""
    try:
        spec = build(msgspec.convert(request, CompileJob))
        spec.compiler.usethread = False  # thread stacks would count against the memory limit
        model = spec.compile()
        for name in dir(model):
            value = None if name.startswith("_") else getattr(model, name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ValueError(f"numbers overflow: {name} is not finite after compilation")
        mujoco.mj_forward(model, mujoco.MjData(model))
    except Exception as error:
        # the compiler's own std::bad_alloc ends as an "unknown exception"
        if re.search("alloc|unknown exception", str(error).lower()):
            raise MemoryError from None
        raise


GUARD = CompileGuard()
