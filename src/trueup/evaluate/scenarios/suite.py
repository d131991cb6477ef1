"""Suites: files of scenarios.

A file is TOML: settings of the suite, `[defaults]` of every scenario, `[vary]` parameters that differ from trial to
trial in all of them, `[[scenario]]` tables, `[[probe]]` tables for the sensitivity, and
`[override.ROBOT_OR_TASK.SCENARIO]` fields that replace others there.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import msgspec

from trueup.core.documents import Strict, read_toml
from trueup.core.errors import TrueupError, did_you_mean
from trueup.evaluate.scenarios.scenario import ParameterChange, Probe, Scenario, check_names

SHIPPED = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}
_MOST = 100  # scenarios of a file


class _File(Strict, frozen=True, kw_only=True):
    """A file before its scenarios are put together."""

    schema: Literal[1]
    title: str
    reference: str | None = None
    speeds: Literal["same", "froude"] = "same"
    defaults: dict[str, Any] = msgspec.field(default_factory=dict)
    vary: dict[str, ParameterChange] = msgspec.field(default_factory=dict)
    scenario: list[dict[str, Any]]
    probe: tuple[Probe, ...] = ()
    override: dict[str, dict[str, dict[str, Any]]] = msgspec.field(default_factory=dict)


class Suite(Strict, frozen=True, kw_only=True):
    """The scenarios of a file as they are for one robot and task.

    reference  robot whose numbers these are: loads, forces and ground are scaled from it; None: nothing is scaled
    vary       what differs from trial to trial in every scenario
    """

    title: str
    reference: str | None
    speeds: Literal["same", "froude"]
    vary: dict[str, ParameterChange]
    scenarios: tuple[Scenario, ...]
    probes: tuple[Probe, ...]

    def only(self, names: tuple[str, ...]) -> Suite:
        """Some of the scenarios, in the file's order."""
        known = [scenario.name for scenario in self.scenarios]
        for name in names:
            if name not in known:
                raise TrueupError(f"no scenario {name!r}{did_you_mean(name, known)}")
        chosen = tuple(scenario for scenario in self.scenarios if not names or scenario.name in names)
        return msgspec.structs.replace(self, scenarios=chosen)


def read_suite(path: str | Path, names: tuple[str, ...] = ()) -> Suite:
    """Read a suite by its file, or a shipped one by its name; `names` are the robot and task that overrides are for."""
    file = SHIPPED.get(str(path), Path(path))
    absent = f"no such file; shipped suites are {', '.join(SHIPPED)}"
    found = read_toml(file, _File, "suite of scenarios", absent)
    if not 1 <= len(found.scenario) <= _MOST:
        raise TrueupError(f"a suite has 1 to {_MOST} scenarios, found {len(found.scenario)}", file=file)
    try:
        _check_finite(msgspec.to_builtins(found))
        check_names(found.vary)
        scenarios = tuple(_scenario(found, raw, names) for raw in found.scenario)
        _check_overrides(found, [scenario.name for scenario in scenarios])
    except (ValueError, msgspec.ValidationError) as error:
        raise TrueupError(str(error)[:500], file=file) from None
    return Suite(
        title=found.title,
        reference=found.reference,
        speeds=found.speeds,
        vary=found.vary,
        scenarios=scenarios,
        probes=found.probe,
    )


def _scenario(file: _File, raw: dict[str, Any], names: tuple[str, ...]) -> Scenario:
    name = str(raw.get("name", "without a name"))
    changed = [part for who in names for key in ("all", name) if (part := file.override.get(who, {}).get(key))]
    merged: dict[str, Any] = {}
    for part in (file.defaults, raw, *changed):
        for key in part:
            if key not in Scenario.__struct_fields__:
                raise ValueError(
                    f"scenario {name!r}: unknown key {key!r}{did_you_mean(key, Scenario.__struct_fields__)}"
                )
        both = {key: merged[key] | value for key, value in part.items() if _tables(merged.get(key), value)}
        merged |= part | both
    try:
        return msgspec.convert(merged, Scenario)
    except msgspec.ValidationError as error:
        raise ValueError(f"scenario {name!r}: {error}") from None


def _tables(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)


def _check_overrides(file: _File, known: list[str]) -> None:
    twice = sorted({name for name in known if known.count(name) > 1})
    if twice:
        raise ValueError(f"scenario {twice[0]!r} is there twice")
    for who, parts in file.override.items():
        for name in parts:
            if name not in (*known, "all"):
                raise ValueError(f"override.{who}: no scenario {name!r}{did_you_mean(name, known)}")


def _check_finite(value: object) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"every number must be finite, found {value}")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            _check_finite(item)
