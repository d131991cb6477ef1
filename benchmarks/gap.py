"""Diagnosis of planted causes, and silence on sound twins. Results: docs/results/gap.md, .json.

    python benchmarks/gap.py --bundle walk.bundle [--part air walking real]

air      go2 twins held in the air, moved by a multisine of 10 s; eleven causes that such a log shows, and sound
walking  go2 twins that walk under a policy for 10 s, encoders, IMU and the policy's bundle; fifteen causes, and sound
real     recordings of an so101 arm and of a go2 in the air, against nominal and calibrated models

A row (a cause, a seed) is on disk as soon as it is done; what is there is not measured again without --fresh.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import tyro
from gap_cases import air_log, walk_log
from gap_page import twin_numbers, twin_section
from parts import Numbers, Parts

from trueup.core.errors import TrueupError
from trueup.gap.config import GapCfg
from trueup.gap.gap import gap
from trueup.gap.result import GapResult
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle

Part = Literal["air", "walking", "real"]
GAP = Parts(name="gap", title="Diagnosis", order=("air", "walking", "real"))
ROBOT = "go2"
IN_AIR = ("joint order", "sign", "offset", "delay", "gain", "friction", "damping", "weak motors", "heat", "hysteresis",
          "wrong rate")  # fmt: skip
WALKING = (*IN_AIR, "payload", "ground friction", "normaliser", "state estimate")
CLEAN = "nothing wrong"


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    bundle: Path | None = None
    """Policy that the walking twins run."""
    part: tuple[Part, ...] = ("air", "walking", "real")
    seeds: int = 10
    first_seed: int = 300
    """Seeds below 300 were looked at while the method was made."""
    only: tuple[str, ...] = ()
    """Causes by name; none named: all."""
    data: Path | None = None
    """Folder with `so101/` and `go2_air/`, for part real."""
    fits: Path | None = None
    """Folder with calibrations of them: `so101/params.json`, `go2_air/params.json`."""
    fresh: bool = False
    measure: bool = True
    """--no-measure: publish the rows that are there."""


def main(cfg: BenchCfg) -> None:
    for part in cfg.part:
        if part == "real":
            real(cfg)
            continue
        causes = [one for one in (*(IN_AIR if part == "air" else WALKING), CLEAN) if not cfg.only or one in cfg.only]
        # seeds outside, so that an interrupted run has a little of everything
        keys = [f"{cause} {seed}" for seed in range(cfg.first_seed, cfg.first_seed + cfg.seeds) for cause in causes]
        asked, known = len(keys), _known(part)
        keys = keys if cfg.measure else [key for key in keys if key in known]
        rows = GAP.each(part, keys, lambda key: diagnose(part, *split(key), cfg.bundle), fresh=cfg.fresh)  # noqa: B023
        all_rows = {key: one for walks in ("air", "walking") for key, one in _known(walks).items()}
        GAP.merge(part, twin_numbers(rows, part, all_rows), twin_section(rows, part, asked), _command(part, cfg.seeds))


def real(cfg: BenchCfg) -> None:
    """Recordings of robots."""
    from gap_real import REAL, diagnose_real, real_section

    if cfg.data is None:
        print("part real needs recordings: --data FOLDER")
        return
    keys = [key for key in REAL if not cfg.only or key in cfg.only]
    GAP.each("real", keys, lambda key: diagnose_real(key, cfg.data, cfg.fits), fresh=cfg.fresh)
    rows = {key: row for key, row in _known("real").items() if key in REAL}
    GAP.merge("real", {}, real_section(rows), "python benchmarks/gap.py --part real --data FOLDER --fits FOLDER")


def split(key: str) -> tuple[str, int]:
    """ "weak motors 3" -> ("weak motors", 3)."""
    cause, seed = key.rsplit(" ", 1)
    return cause, int(seed)


def diagnose(part: Part, cause: str, seed: int, bundle: Path | None) -> Numbers:
    """One twin, one diagnosis without the tables that do not rank."""
    log = air_log(ROBOT, cause, seed) if part == "air" else walk_log(ROBOT, _bundle(bundle), cause, seed)
    began = time.process_time()
    ran = bundle if part == "walking" else None
    try:
        found = gap(ROBOT, log, GapCfg(pairs=False, horizons=False), bundle=ran).result
    except TrueupError as error:
        return refused(str(error), float(log.time[-1] - log.time[0]))
    return judged(found, cause, time.process_time() - began, float(log.time[-1] - log.time[0]))


def refused(why: str, log_s: float) -> Numbers:
    """A diagnosis that was not made is a wrong answer."""
    return {"first": "refused", "top1": False, "top3": False, "tied": False, "evidence": why, "cpu_s": 0.0,
            "log_s": round(log_s, 1), "said": ["refused"], "explained": {}}  # fmt: skip


def judged(found: GapResult, cause: str, cpu_s: float, log_s: float) -> Numbers:
    """What was said, and whether it is right."""
    said = [one.name for one in found.causes] or [CLEAN]
    return {
        "first": said[0], "top1": said[0] == cause, "top3": cause in said[:3],
        "tied": cause in [one.name for one in found.causes if one.tied], "evidence": found.causes[0].evidence if
        found.causes else "", "cpu_s": round(cpu_s, 1), "log_s": round(log_s, 1), "said": said[:4],
        "explained": {name: round(share, 3) for name, share in sorted(found.tried.items(), key=lambda one: -one[1])},
    }  # fmt: skip


@cache
def _bundle(place: Path | None) -> PolicyBundle:
    if place is None:
        raise SystemExit("walking twins need a policy: --bundle walk.bundle")
    return load_bundle(place)


def _known(part: str) -> dict[str, Numbers]:
    return GAP.load()["runs"].get(part, {})  # type: ignore[attr-defined,no-any-return]


def _command(part: str, seeds: int) -> str:
    more = "" if part == "air" else " --bundle walk.bundle"
    return f"python benchmarks/gap.py --part {part}{more} --seeds {seeds}"


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
