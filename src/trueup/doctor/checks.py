"""Checks of this computer, each with a verdict and advice. Printing is in `report.doctor`.

Importing this module needs no simulator: a missing one is a finding, not a crash.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from trueup.core import machine
from trueup.core.errors import TrueupError
from trueup.doctor import packages

if TYPE_CHECKING:
    from trueup.doctor.speed import Speed

Status = Literal["ok", "warn", "fail"]
Value = TypeVar("Value")
_GB = 1e9
_EXTRAS = ("sim", "report", "data")
_SLOW_STEPS_PER_S = 20_000.0  # below it, a training of minutes becomes one of hours


@dataclass(frozen=True, kw_only=True)
class DoctorVerb:
    """Check the installation and estimate how long runs take on this computer.

    In: nothing. Out: checks (versions, cores, physics speed, video, browser) and costs; exit code 1 if one fails.
    """

    json: bool = False  # Print one JSON object instead of tables.


@dataclass(frozen=True, kw_only=True)
class MachineCheck:
    """One finding: `advice` says what to do about it, empty if nothing."""

    name: str
    status: Status
    found: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """All checks, and the measured speed where it could be measured."""

    checks: list[MachineCheck]
    speed: Speed | None


def diagnose(*, seconds: float = 1.5) -> Diagnosis:
    """Check everything and keep the speed; `seconds` go into measuring physics."""
    checks = [check_python(), *check_packages(packages.wanted_packages())]
    checks += [check_cores(), check_load(), check_memory(), check_disk(), check_threads()]
    physics, speed = _guarded("physics", lambda: _physics(seconds))
    if speed is not None and speed.steps_per_s_all < _SLOW_STEPS_PER_S:
        physics = _check("physics", physics.found, "slow: trainings take several times longer than the guides say")
    drawing, frame_s = _guarded("films", _drawing)
    if speed is not None and frame_s is not None:
        speed = replace(speed, frame_s=frame_s)
    return Diagnosis(checks=[*checks, physics, _guarded("ffmpeg", _ffmpeg)[0], drawing, check_browser()], speed=speed)


def _check(name: str, found: str, advice: str = "", bad: Status = "warn") -> MachineCheck:
    """A check that is ok where there is no advice."""
    return MachineCheck(name=name, status=bad if advice else "ok", found=found, advice=advice)


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> MachineCheck:
    """Python 3.11 or later."""
    advice = "trueup needs Python 3.11 or later" if version < (3, 11) else ""
    return _check("python", ".".join(map(str, version)), advice, bad="fail")


def check_packages(wanted: list[packages.Package]) -> list[MachineCheck]:
    """One check for what trueup always needs and one for each group of extras."""
    if not wanted:
        advice = "versions cannot be checked; install it: pip install -e '.[all]'"
        return [_check("packages", "trueup runs from a checkout that is not installed", advice)]
    return [_check_group(extra, [p for p in wanted if p.extra == extra]) for extra in (packages.CORE, *_EXTRAS)]


def _check_group(extra: str, group: list[packages.Package]) -> MachineCheck:
    found = ", ".join(f"{package.name} {package.installed or 'missing'}" for package in group)
    unfit = ", ".join(f"{package.name}{package.bounds}" for package in group if not package.fits)
    command = "pip install trueup" if extra == packages.CORE else f"pip install 'trueup[{extra}]'"
    advice = f"needs {unfit}: {command}" if unfit else ""
    return _check(f"packages: {extra}", found, advice, bad="fail" if extra == packages.CORE else "warn")


def check_cores() -> MachineCheck:
    """Cores of the machine, and those this process may use."""
    usable = machine.usable_cores()
    advice = "" if usable > 1 else "one core: training will be slow"
    return _check("cores", f"{usable} usable of {os.cpu_count() or 1}", advice)


def check_load() -> MachineCheck:
    """Whether others are using the machine at this moment."""
    load = machine.load_average()
    if load is None:
        return _check("load", "not reported by this system")
    busy = load > 0.5 * machine.usable_cores()
    advice = "other programs are running: the speeds below are too low" if busy else ""
    return _check("load", f"{load:.2f} over the last minute", advice)


def check_memory() -> MachineCheck:
    """Memory that can still be taken; 1 GB is enough for everything built in."""
    free = machine.free_memory_bytes()
    if free is None:
        return _check("memory", "not reported by this system")
    advice = "close other programs, or train with fewer simulations" if free < 1 * _GB else ""
    return _check("memory", f"{free / _GB:.1f} GB free", advice)


def check_disk() -> MachineCheck:
    """Room for runs and films in the current folder."""
    free = machine.free_disk_bytes()
    advice = "make room, or write runs to another disk with --out" if free < 2 * _GB else ""
    return _check("disk", f"{free / _GB:.1f} GB free here", advice, bad="fail" if free < 0.1 * _GB else "warn")


def check_threads() -> MachineCheck:
    """OMP_NUM_THREADS: linear algebra should not compete with the simulator's threads."""
    value, usable = os.environ.get("OMP_NUM_THREADS", ""), machine.usable_cores()
    too_many = value.isdigit() and int(value) > usable
    advice = f"more threads than the {usable} usable cores: set OMP_NUM_THREADS=1" if too_many else ""
    return _check("threads", f"OMP_NUM_THREADS={value}" if value else "OMP_NUM_THREADS unset", advice)


def check_browser() -> MachineCheck:
    """Something that opens report pages."""
    browser = machine.find_browser()
    advice = "pages are single files: copy them to a computer with a browser, or apt-get install chromium"
    return _check("browser", browser or "none", "" if browser else advice)


def _ffmpeg() -> tuple[str, str]:
    from trueup.view.film import find_ffmpeg

    path = find_ffmpeg()
    return path, path


def _physics(seconds: float) -> tuple[str, Speed]:
    from trueup.doctor.speed import measure_speed

    speed = measure_speed(machine.usable_cores(), seconds=seconds)
    single, every = speed.steps_per_s_one, speed.steps_per_s_all
    return f"{speed.robot}: {single:,.0f} steps/s on 1 thread, {every:,.0f} on {speed.threads}", speed


def _drawing() -> tuple[str, float]:
    from trueup.doctor.speed import measure_frame_s
    from trueup.view.draw import HEIGHT, WIDTH

    frame_s = measure_frame_s()
    return f"{1000 * frame_s:.0f} ms per picture of {WIDTH} x {HEIGHT}", frame_s


def _guarded(name: str, measure: Callable[[], tuple[str, Value]]) -> tuple[MachineCheck, Value | None]:
    """Turn an exception into a finding: without this part, the rest of trueup still works."""
    try:
        found, value = measure()
        return _check(name, found), value
    except ModuleNotFoundError as error:
        extra = "sim" if error.name in ("mujoco", "scipy") else "all"
        return _check(name, f"no {error.name}", f"pip install 'trueup[{extra}]'"), None
    except TrueupError as error:
        return _check(name, "does not work", str(error)), None
