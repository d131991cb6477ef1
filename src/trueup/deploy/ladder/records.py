"""Rungs of the ladder and their records: replay, shadow, hang, ground, full; each needs those below it.

A record is a JSON file beside the bundle (NAME.bundle.ladder/...), bound to the bundle's hash, to the robot's model and
to the robot or twin that the driver names. It holds a hash of its own content, so that an edited one is refused, and
that of the record below as it was then. When a lower rung is run again and fails, the records above it are deleted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import msgspec

from trueup._version import __version__
from trueup.core.arrays import sha256_of
from trueup.core.documents import read_json, write_json
from trueup.core.errors import TrueupError
from trueup.hardware.drivers.open import same_twin

Rung = Literal["replay", "shadow", "hang", "ground", "full"]
RUNGS: tuple[Rung, ...] = get_args(Rung)
BASES = {"hang": "fixed", "ground": "free", "full": "free"}  # of a twin whose base floats: in the air, on the ground
SCHEMA = 1
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class RungCfg:
    """What a rung allows.

    gain    of the policy's gains; torque: of the robot's torque limits; speed: m/s and rad/s, None: as trained
    seconds  default length; least_s that the policy must have run to be judged
    trips    whether the monitors may stop the policy: the observations of a hanging robot are outside training
    """

    about: str
    gain: float = 1.0
    torque: float = 1.0
    speed: float | None = None
    seconds: float = 20.0
    least_s: float = 5.0
    trips: bool = True


RUNG_CFGS: dict[Rung, RungCfg] = {
    "replay": RungCfg(about="golden sequences (and a log) through the controller; no robot"),
    "shadow": RungCfg(about="reads the live robot and sends nothing", seconds=10.0),
    "hang": RungCfg(
        about="in the air, a fifth of the gains", gain=0.2, torque=0.8, speed=0.3, seconds=10.0, trips=False
    ),
    "ground": RungCfg(about="on the ground, low speed, torque at 80 %", torque=0.8, speed=0.3, least_s=10.0),
    "full": RungCfg(about="as trained"),
}


class RungAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One criterion of a rung: required and measured."""

    name: str
    passed: bool
    asked: str
    found: str


class RungRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Record of a rung.

    identity     of the robot or twin, see `identity`; empty for replay
    below        hash of the record of the rung below, "" for the first
    uncertified  what was missing where --uncertified let it start
    allowed      findings of the preflight that --allow let pass
    """

    schema: int = SCHEMA
    rung: Rung
    bundle: str
    name: str
    robot: str
    model_sha256: str
    identity: str
    below: str
    started: str
    seconds: float
    judged: tuple[RungAnswer, ...]
    uncertified: str = ""
    allowed: tuple[str, ...] = ()
    settings: dict[str, float | str | bool | None] = {}
    folder: str = ""
    version: str = __version__
    sha256: str = ""

    @property
    def passed(self) -> bool:
        return bool(self.judged) and all(one.passed for one in self.judged)

    def sealed(self) -> RungRecord:
        """The record with the hash of its content."""
        return msgspec.structs.replace(self, sha256=_content_hash(self))


@dataclass(frozen=True, kw_only=True)
class Climber:
    """Bundle, robot and driver that a ladder belongs to."""

    path: Path
    bundle: str  # hash
    robot: str
    model_sha256: str
    reference: str  # what was given as --driver

    @property
    def identity(self) -> str:
        return identity(self.reference)

    def place(self, rung: Rung) -> Path:
        """File of a rung's record."""
        folder = self.path.with_name(f"{self.path.name}.ladder")
        if rung == "replay":
            return folder / "replay.json"
        readable = re.sub(r"[^A-Za-z0-9.-]+", "_", self.identity)[:60]
        return folder / f"{readable}-{sha256_of([self.identity])[:8]}" / f"{rung}.json"


def identity(reference: str) -> str:
    """The robot that a driver's reference means, without options of connection or mounting.

    For a twin: preset, seed and fit, whatever its base; for other drivers: the part before the question mark.
    """
    twin = same_twin(reference)
    if twin:
        head, _, query = twin.partition("?")
        kept = [part for part in query.split("&") if not part.startswith("base=")]
        return f"{head}?{'&'.join(kept)}"
    return reference.partition("?")[0]


def held(reference: str, base: str) -> str:
    """A twin's reference with its base "fixed" or "free"; "" and other drivers: as it is."""
    if not base or not reference.startswith("twin:"):
        return reference
    head, _, query = reference.partition("?")
    kept = [part for part in query.split("&") if part and not part.startswith("base=")]
    return f"{head}?{'&'.join([*kept, f'base={base}'])}"


def require_below(climber: Climber, rung: Rung) -> str:
    """Hash of the record of the rung below; a TrueupError names the first that is missing and the command for it."""
    below = ""
    for lower in RUNGS[: RUNGS.index(rung)]:
        below = _read(climber, lower, rung).sha256
    return below


def write_record(climber: Climber, record: RungRecord) -> Path:
    """Write a record with the hash of its content."""
    return write_json(climber.place(record.rung), record.sealed())


def read_record(path: str | Path) -> RungRecord:
    """Read a record and verify its hash; every failure names the file."""
    file = Path(path)
    found = read_json(file, RungRecord, "record of a rung", schema=SCHEMA, most_bytes=_MAX_BYTES)
    if found.sha256 != _content_hash(found):
        raise TrueupError("its content was changed after it was written: climb this rung again", file=file)
    return found


def _read(climber: Climber, lower: Rung, rung: Rung) -> RungRecord:
    place = climber.place(lower)
    if not place.exists():
        raise _refusal(climber, lower, rung, "has not been climbed")
    found = read_record(place)
    wanted = {"bundle": climber.bundle, "robot": climber.robot, "model_sha256": climber.model_sha256}
    if lower != "replay":
        wanted["identity"] = climber.identity
    for name, value in wanted.items():
        if getattr(found, name) != value:
            told = f"{name} {str(getattr(found, name))[:40]!r}, this is {value[:40]!r}"
            raise _refusal(climber, lower, rung, f"was climbed with another {told}")
    if found.rung != lower or not found.passed:
        failed = ", ".join(one.name for one in found.judged if not one.passed) or "nothing was judged"
        raise _refusal(climber, lower, rung, f"was not passed ({failed})")
    return found


def _refusal(climber: Climber, lower: Rung, rung: Rung, why: str) -> TrueupError:
    reference = held(climber.reference, "fixed" if lower == "hang" else "")
    driver = "" if lower == "replay" else f" --driver '{reference}'"
    command = f"trueup deploy {climber.path} --rung {lower}{driver}"
    return TrueupError(f"rung {rung!r} needs rung {lower!r}, which {why}: `{command}`", file=climber.place(lower))


def _content_hash(record: RungRecord) -> str:
    plain = msgspec.structs.replace(record, sha256="")
    return sha256_of([msgspec.json.encode(plain, order="sorted")])
