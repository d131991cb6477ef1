"""What this computer can do: checks with a verdict and advice. Printing is in `report.doctor`.

Importing this module needs no simulator: a missing one is a finding, not a crash.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from trueup.core import machine
from trueup.core.errors import TrueupError
from trueup.doctor import packages

if TYPE_CHECKING:
    from trueup.doctor.speed import Speed

Status = Literal["ok", "warn", "fail"]
_GB = 1e9
_EXTRAS = ("sim", "report", "data")
_SLOW_STEPS_PER_S = 20_000.0  # below it, a training of minutes becomes one of hours


@dataclass(frozen=True, kw_only=True)
class DoctorVerb:
    """Check the installation and estimate what runs here will cost.

    In: nothing. Out: checks (versions, cores, physics speed, video, browser) and costs; exit code 1 if one fails.
    """

    json: bool = False  # Print one JSON object instead of tables.


@dataclass(frozen=True, kw_only=True)
class Check:
    """One finding: `advice` says what to do about it, empty if nothing."""

    name: str
    status: Status
    found: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """All checks, and the measured speed where it could be measured."""

    checks: list[Check]
    speed: Speed | None


def run_checks() -> list[Check]:
    """Check everything; takes a few seconds, as physics and drawing are measured."""
    return diagnose().checks


def diagnose(*, seconds: float = 1.5) -> Diagnosis:
    """Check everything and keep the speed; `seconds` go into measuring physics."""
    checks = [check_python(), *check_packages(packages.wanted_packages())]
    checks += [check_cores(), check_load(), check_memory(), check_disk(), check_threads()]
    physics, speed = _check_physics(seconds)
    drawing, frame_s = _check_drawing()
    if speed is not None and frame_s is not None:
        speed = replace(speed, frame_s=frame_s)
    return Diagnosis(checks=[*checks, physics, check_ffmpeg(), drawing, check_browser()], speed=speed)


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Check:
    """Python 3.11 or later."""
    found = platform.python_version() if version == sys.version_info[:2] else ".".join(map(str, version))
    if version < (3, 11):
        return Check(name="python", status="fail", found=found, advice="trueup needs Python 3.11 or later")
    return Check(name="python", status="ok", found=found)


def check_packages(wanted: list[packages.Package]) -> list[Check]:
    """One check for what trueup always needs and one for each group of extras."""
    if not wanted:
        return [
            Check(
                name="packages",
                status="warn",
                found="trueup runs from a checkout that is not installed",
                advice="versions cannot be checked; install it: pip install -e '.[all]'",
            )
        ]
    return [_check_group(extra, [p for p in wanted if p.extra == extra]) for extra in (packages.CORE, *_EXTRAS)]


def _check_group(extra: str, group: list[packages.Package]) -> Check:
    found = ", ".join(f"{package.name} {package.installed or 'missing'}" for package in group)
    unfit = [package for package in group if not package.fits]
    if not unfit:
        return Check(name=f"packages: {extra}", status="ok", found=found)
    asked = ", ".join(f"{package.name}{package.bounds}" for package in unfit)
    command = "pip install trueup" if extra == packages.CORE else f"pip install 'trueup[{extra}]'"
    status: Status = "fail" if extra == packages.CORE else "warn"
    return Check(name=f"packages: {extra}", status=status, found=found, advice=f"needs {asked}: {command}")


def check_cores() -> Check:
    """Cores of the machine, and those this process may use."""
    total, usable = os.cpu_count() or 1, machine.usable_cores()
    advice = "" if usable > 1 else "one core: training will be slow"
    return Check(
        name="cores", status="ok" if usable > 1 else "warn", found=f"{usable} usable of {total}", advice=advice
    )


def check_load() -> Check:
    """Whether others are using the machine at this moment."""
    load, usable = machine.load_average(), machine.usable_cores()
    if load is None:
        return Check(name="load", status="ok", found="not reported by this system")
    busy = load > 0.5 * usable
    advice = "other programs are running: the speeds below are too low" if busy else ""
    return Check(name="load", status="warn" if busy else "ok", found=f"{load:.2f} over the last minute", advice=advice)


def check_memory() -> Check:
    """Memory that can still be taken; 1 GB is enough for everything built in."""
    free = machine.free_memory_bytes()
    if free is None:
        return Check(name="memory", status="ok", found="not reported by this system")
    short = free < 1 * _GB
    advice = "close other programs, or train with fewer simulations" if short else ""
    return Check(name="memory", status="warn" if short else "ok", found=f"{free / _GB:.1f} GB free", advice=advice)


def check_disk() -> Check:
    """Room for runs and films in the current folder."""
    free = machine.free_disk_bytes()
    status: Status = "fail" if free < 0.1 * _GB else "warn" if free < 2 * _GB else "ok"
    advice = "" if status == "ok" else "make room, or write runs to another disk with --out"
    return Check(name="disk", status=status, found=f"{free / _GB:.1f} GB free here", advice=advice)


def check_threads() -> Check:
    """OMP_NUM_THREADS: linear algebra should not compete with the simulator's threads."""
    value, usable = os.environ.get("OMP_NUM_THREADS", ""), machine.usable_cores()
    if value.isdigit() and int(value) > usable:
        advice = f"more threads than the {usable} usable cores: set OMP_NUM_THREADS=1"
        return Check(name="threads", status="warn", found=f"OMP_NUM_THREADS={value}", advice=advice)
    return Check(name="threads", status="ok", found=f"OMP_NUM_THREADS={value}" if value else "OMP_NUM_THREADS unset")


def check_ffmpeg() -> Check:
    """The program that makes films from pictures."""
    return _guarded("ffmpeg", _find_ffmpeg)


def check_browser() -> Check:
    """Something that opens report pages."""
    browser = machine.find_browser()
    if browser is None:
        advice = "pages are single files: copy them to a computer with a browser, or apt-get install chromium"
        return Check(name="browser", status="warn", found="none", advice=advice)
    return Check(name="browser", status="ok", found=browser)


def _find_ffmpeg() -> str:
    from trueup.view.film import find_ffmpeg

    return find_ffmpeg()


def _check_physics(seconds: float) -> tuple[Check, Speed | None]:
    speeds: list[Speed] = []

    def measure() -> str:
        from trueup.doctor.speed import measure_speed

        speed = measure_speed(machine.usable_cores(), seconds=seconds)
        speeds.append(speed)
        one, every = speed.steps_per_s_one, speed.steps_per_s_all
        return f"{speed.robot}: {one:,.0f} steps/s on 1 thread, {every:,.0f} on {speed.threads}"

    check = _guarded("physics", measure)
    if speeds and speeds[0].steps_per_s_all < _SLOW_STEPS_PER_S:
        advice = "slow: expect trainings to take several times longer than the guides say"
        check = Check(name="physics", status="warn", found=check.found, advice=advice)
    return check, speeds[0] if speeds else None


def _check_drawing() -> tuple[Check, float | None]:
    frames: list[float] = []

    def measure() -> str:
        from trueup.doctor.speed import measure_frame_s

        frames.append(measure_frame_s())
        return f"{1000 * frames[0]:.0f} ms per picture of 640 x 480"

    check = _guarded("films", measure)
    return check, frames[0] if frames else None


def _guarded(name: str, measure: Callable[[], str]) -> Check:
    """Turn what goes wrong into a finding: without this part, the rest of trueup still works."""
    try:
        return Check(name=name, status="ok", found=measure())
    except ModuleNotFoundError as error:
        extra = "sim" if error.name in ("mujoco", "scipy") else "all"
        return Check(name=name, status="warn", found=f"no {error.name}", advice=f"pip install 'trueup[{extra}]'")
    except TrueupError as error:
        return Check(name=name, status="warn", found="does not work", advice=str(error))
