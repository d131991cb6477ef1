"""Mapping: a TOML file that assigns columns of a table to joints and signals, with units.

    value in the log = sign * scale * (raw value in the log's unit) + offset

`columns` is a list of names, one for each joint; or one name with `{i}` (0, 1, ... or the numbers of `index`) or
`{joint}` in it; or the name of a column that holds a list of numbers in every row, of which `index` picks and orders.
The first [[file]] gives the log its time base; the others are brought onto it: `join = "hold"` (the last value before,
for commands) or `"linear"` (for sensors).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from trueup.core.documents import Strict, read_toml
from trueup.core.errors import TrueupError, did_you_mean
from trueup.data.log import SIGNALS, signal_width

SCHEMA = 1
SHIPPED = Path(__file__).parent / "mappings"
MAX_JOINTS = 256
_DEG = math.pi / 180.0
_REV = 2.0 * math.pi
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
# units that need the mapping's `scale`: for currents it is the torque constant (N m/A)
BARE = {"normalised": 1.0, "counts": 1.0, "A": 1.0, "mA": 1e-3}
# log unit -> units that can be converted to it: value in the log's unit = factor * raw + bias
UNITS: dict[str, dict[str, float]] = {
    "rad": {"rad": 1.0, "deg": _DEG, "rev": _REV, "mrad": 1e-3},
    "rad/s": {"rad/s": 1.0, "deg/s": _DEG, "rev/s": _REV, "rpm": _REV / 60.0},
    "N m": {"N m": 1.0, "mN m": 1e-3, "kgf cm": 0.0980665},
    "deg C": {"deg C": 1.0, "K": 1.0},
    "N m/rad": {"N m/rad": 1.0, "N m/deg": 1.0 / _DEG},
    "N m s/rad": {"N m s/rad": 1.0, "N m s/deg": 1.0 / _DEG},
    "m": {"m": 1.0, "cm": 1e-2, "mm": 1e-3},
    "m/s": {"m/s": 1.0, "cm/s": 1e-2, "mm/s": 1e-3},
    "m/s^2": {"m/s^2": 1.0, "g": 9.80665},
    "V": {"V": 1.0, "mV": 1e-3},
    "1": {"1": 1.0},
}
BIASES = {"K": -273.15}

Numbers = float | tuple[float, ...]
Name = Annotated[str, msgspec.Meta(max_length=200)]
Text = Annotated[str, msgspec.Meta(max_length=2000)]
Names = Annotated[tuple[Name, ...], msgspec.Meta(max_length=MAX_JOINTS)]
T = TypeVar("T", float, str)


def each(value: T | tuple[T, ...], count: int) -> tuple[T, ...]:
    """Return one entry for each of `count` columns: the list as it is, a single one repeated."""
    return value if isinstance(value, tuple) else (value,) * count


class TimeMap(Strict, frozen=True, kw_only=True):
    """The time column; several (seconds and nanoseconds) are added up."""

    column: Name | Names
    unit: Name | Names
    offset_s: float = 0.0  # added: brings the clocks of several files together

    def __post_init__(self) -> None:
        if not math.isfinite(self.offset_s):
            raise ValueError("time: offset_s must be finite")
        if len(self.units) != len(self.columns) or not self.units:
            raise ValueError(f"time: {len(self.columns)} columns but {len(self.units)} units")
        for unit in self.units:
            if unit not in TIME_UNITS:
                raise ValueError(f"time: unknown unit {unit!r}{did_you_mean(unit, TIME_UNITS)}")

    @property
    def columns(self) -> tuple[str, ...]:
        return each(self.column, 1)

    @property
    def units(self) -> tuple[str, ...]:
        return each(self.unit, len(self.columns))


class SignalMap(Strict, frozen=True, kw_only=True):
    """One signal of the log: the columns it comes from, or a constant `value`."""

    signal: Name
    columns: Name | Names | None = None
    value: Numbers | None = None
    unit: Name | Names | None = None  # of the file; a constant is in the log's unit
    joints: Names = ()  # those that this entry covers; none named: all
    index: tuple[int, ...] = ()
    every_joint: bool = False  # one column that holds for every joint
    sign: Numbers = 1.0
    scale: Numbers = 1.0
    offset: Numbers = 0.0

    @property
    def is_per_joint(self) -> bool:
        return SIGNALS[self.signal][0] == "joint"

    @property
    def units(self) -> dict[str, float]:
        """Units that the file may have, with their factors to the log's."""
        return UNITS[SIGNALS[self.signal][1]] | BARE

    def __post_init__(self) -> None:
        if self.signal not in SIGNALS:
            raise ValueError(f"a log knows no signal {self.signal!r}{did_you_mean(self.signal, SIGNALS)}")
        if (self.columns is None) == (self.value is None):
            raise ValueError(f"{self.signal}: give either `columns` or a constant `value`")
        for name in ("value", "sign", "scale", "offset"):
            if not all(math.isfinite(x) for x in each(getattr(self, name) or 0.0, 1)):
                raise ValueError(f"{self.signal}: {name} must be finite")
        if any(abs(x) != 1.0 for x in each(self.sign, 1)):
            raise ValueError(f"{self.signal}: sign is 1 or -1 (use scale for other factors)")
        if any(x == 0.0 for x in each(self.scale, 1)):
            raise ValueError(f"{self.signal}: scale 0 would erase the data")
        if any(not 0 <= i < 100_000 for i in self.index) or len(self.index) > MAX_JOINTS:
            raise ValueError(f"{self.signal}: index counts from 0")
        if (self.joints or self.every_joint) and not self.is_per_joint:
            raise ValueError(f"{self.signal} is no joint signal: `joints` and `every_joint` have no place")
        self._check_units()

    def _check_units(self) -> None:
        log_unit = SIGNALS[self.signal][1]
        if self.columns is None:
            if self.unit is not None:
                raise ValueError(f"{self.signal}: a constant value is in {log_unit} and takes no unit")
            return
        if self.unit is None:
            raise ValueError(f"{self.signal}: say the file's unit ({', '.join(self.units)})")
        units = each(self.unit, 1)
        for k, unit in enumerate(units):
            if unit not in self.units:
                raise ValueError(f"{self.signal}: unknown unit {unit!r}{did_you_mean(unit, self.units)}")
            if unit in BARE and each(self.scale, len(units))[k : k + 1] == (1.0,):
                raise ValueError(f"{self.signal}: unit {unit!r} needs a scale in {log_unit} (and an offset)")


class FileMap(Strict, frozen=True, kw_only=True, rename={"signals": "signal"}):
    """One file of a recording: its name pattern, its clock and its signals."""

    signals: Annotated[tuple[SignalMap, ...], msgspec.Meta(max_length=64)]
    pattern: Name = "*"  # of the file's name, for folders and recordings of several files
    time: TimeMap | None = None
    rate_hz: float | None = None  # for files without a time column
    join: Literal["hold", "linear"] = "hold"
    missing: Literal["refuse", "keep"] = "refuse"  # empty cells and NaN: refuse the file, or keep them as NaN
    delimiter: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        if (self.time is None) == (self.rate_hz is None):
            raise ValueError(f"file {self.pattern!r}: give either a [file.time] column or rate_hz")
        if self.rate_hz is not None and not 1e-3 <= self.rate_hz <= 1e6:
            raise ValueError(f"file {self.pattern!r}: rate_hz must lie between 0.001 and 1000000")
        if not self.signals:
            raise ValueError(f"file {self.pattern!r}: needs at least one [[file.signal]]")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\r\n"\0'):
            raise ValueError(f"file {self.pattern!r}: delimiter is one character")


class Mapping(Strict, frozen=True, kw_only=True, rename={"files": "file"}):
    """Mapping of a foreign recording to a Log."""

    schema: int
    name: Name
    joints: Names  # order of the log's columns
    files: Annotated[tuple[FileMap, ...], msgspec.Meta(max_length=16)]
    robot: Name = ""
    description: Text = ""
    # notes for users of the log, kept in its provenance
    notes: Annotated[tuple[Text, ...], msgspec.Meta(max_length=64)] = ()

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", self.name):
            raise ValueError(f"name {self.name!r}: use letters, digits, '_', '-', '.' (64 at most)")
        if len(set(self.joints)) != len(self.joints):
            raise ValueError("joints: a name is listed twice")
        if not self.files:
            raise ValueError("a mapping needs at least one [[file]]")
        for file in self.files:
            for signal in file.signals:
                self._check_widths(signal)
        self._check_cover()

    def joints_of(self, signal: SignalMap) -> tuple[str, ...]:
        """Joints that an entry covers, in the order of its columns."""
        return signal.joints or self.joints

    def width(self, signal: SignalMap) -> int:
        """Number of columns that an entry fills."""
        return signal_width(signal.signal, self.joints_of(signal))

    def column_names(self, signal: SignalMap) -> tuple[str, ...]:
        """Names of the table columns that an entry reads; one for a column of lists or for every joint."""
        text = signal.columns
        if text is None or isinstance(text, tuple):
            return text or ()
        if "{i}" not in text and "{joint}" not in text:
            return (text,)
        width = self.width(signal)
        joints = self.joints_of(signal) if signal.is_per_joint else ("",) * width
        numbered = zip(signal.index or range(width), joints, strict=True)
        # plain replacement: str.format would let a mapping ask for fields and widths of its own
        return tuple(text.replace("{i}", str(i)).replace("{joint}", joint) for i, joint in numbered)

    def _check_widths(self, signal: SignalMap) -> None:
        for joint in signal.joints:
            if joint not in self.joints:
                raise ValueError(f"{signal.signal}: unknown joint {joint!r}{did_you_mean(joint, self.joints)}")
        width = self.width(signal)
        for name in ("columns", "unit", "value", "index", "sign", "scale", "offset"):
            entry = getattr(signal, name)
            if isinstance(entry, tuple) and entry and len(entry) != width:
                raise ValueError(f"{signal.signal}: {name} lists {len(entry)} entries for {width} columns")
            if isinstance(entry, tuple) and not entry and name != "index":
                raise ValueError(f"{signal.signal}: {name} is an empty list")

    def _check_cover(self) -> None:
        """Every signal is filled once: all joints, none twice."""
        filled: dict[str, Counter[str]] = {}
        for signal in (signal for file in self.files for signal in file.signals):
            filled.setdefault(signal.signal, Counter()).update(
                self.joints_of(signal) if signal.is_per_joint else ["it"]
            )
        for name, times in filled.items():
            twice = [joint for joint, count in times.items() if count > 1]
            if twice:
                raise ValueError(f"{name}: {twice[0]} is mapped twice")
            absent = [joint for joint in self.joints if joint not in times] if SIGNALS[name][0] == "joint" else []
            if absent:
                raise ValueError(f"{name}: joint {absent[0]!r} is not mapped")


def mapping_names() -> tuple[str, ...]:
    """Names of the mappings that ship with trueup."""
    return tuple(sorted(file.stem for file in SHIPPED.glob("*.toml")))


def find_mapping(name_or_path: str | Path) -> Mapping:
    """Return a shipped mapping by its name, or your own by the path of its TOML file."""
    text = str(name_or_path)
    if text in mapping_names():
        return read_mapping(SHIPPED / f"{text}.toml")
    if text.endswith(".toml"):
        return read_mapping(text)
    raise TrueupError(
        f"no mapping {text[:200]!r}: neither shipped nor a .toml file{did_you_mean(text, mapping_names())}"
    )


def read_mapping(path: str | Path) -> Mapping:
    """Read and check a mapping file; every failure names the file and the key."""
    return read_toml(path, Mapping, "mapping", "no mapping file here")
