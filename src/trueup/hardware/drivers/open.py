"""From what a user types after --driver to a Driver.

twin:harmonic                      start a twin in the background, in real time
twin:harmonic?seed=7&lockstep=1    options after a question mark (see TWIN_OPTIONS)
twin:ideal?seed=3&params=fit/      a twin of a calibrated robot: drawn from the fit's posterior
twin:my/preset.toml                one's own preset
twin@127.0.0.1:7000                a twin that is running
my_robot.py:make_driver?port=x     one's own driver (see `own`)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal
from urllib.parse import quote, unquote

from trueup.core.errors import TrueupError, did_you_mean
from trueup.hardware.driver import Driver
from trueup.hardware.drivers.own import is_own, make_own
from trueup.hardware.drivers.twin import TwinDriver
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import Robot

KINDS = {
    "twin:PRESET[?seed=7&lockstep=1]": "a virtual robot, started in the background",
    "twin@HOST:PORT": "a virtual robot that is running (`trueup twin serve`)",
    "FILE.py:FUNCTION or MODULE:FUNCTION": "your own driver (docs/record.md)",
}


def open_driver(
    reference: str, robot: Robot, *, command_hz: float | None = None, lockstep: bool | None = None
) -> Driver:
    """Return the driver that `reference` names, not yet connected.

    `command_hz` and `lockstep` are what a twin started here gets unless the reference says otherwise.
    """
    if reference.startswith("twin:"):
        wanted = ServeCfg(lockstep=bool(lockstep))
        if command_hz is not None:
            wanted = replace(wanted, command_hz=command_hz)
        return TwinDriver(robot, twin_options(reference.removeprefix("twin:"), wanted))
    if reference.startswith("twin@"):
        return TwinDriver(robot, address=_address(reference.removeprefix("twin@")))
    if is_own(reference):
        return make_own(reference, robot, command_hz if command_hz is not None else robot.spec.control_hz)
    known = "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items())
    raise TrueupError(f"no driver {reference!r}; known are {known}")


def twin_options(text: str, wanted: ServeCfg | None = None) -> ServeCfg:
    """Read `PRESET?key=value&...`; what it does not say stays as in `wanted`."""
    preset, _, query = text.partition("?")
    if not preset:
        raise TrueupError("a twin needs a preset: twin:mild, twin:harmonic, twin:my/preset.toml")
    options = replace(wanted or ServeCfg(), preset=preset)
    for part in query.split("&") if query else []:
        key, _, value = part.partition("=")
        if key not in TWIN_OPTIONS:
            raise TrueupError(f"a twin has no option {key!r}{did_you_mean(key, TWIN_OPTIONS)}", place=f"twin:{text}")
        try:
            options = TWIN_OPTIONS[key](options, unquote(value))
        except ValueError as error:
            raise TrueupError(f"option {key!r} of a twin: {error}", place=f"twin:{text}") from None
    return options


def same_twin(reference: str) -> str:
    """Return a twin's reference with only what makes it the robot that it is; "" for drivers that start no twin."""
    if not reference.startswith("twin:"):
        return ""
    try:
        options = twin_options(reference.removeprefix("twin:"))
    except TrueupError:
        return ""
    base = "" if options.base == ServeCfg().base else f"&base={options.base}"
    fit = "" if options.params is None else f"&params={quote(options.params)}"
    return f"twin:{options.preset}?seed={options.seed}{base}{fit}"


def _flag(text: str) -> bool:
    if text.lower() not in ("0", "1", "false", "true", "no", "yes"):
        raise ValueError(f"expected 0 or 1, found {text!r}")
    return text.lower() in ("1", "true", "yes")


def _base(text: str) -> Literal["fixed", "free"]:
    known: dict[str, Literal["fixed", "free"]] = {"fixed": "fixed", "free": "free"}
    if text not in known:
        raise ValueError(f"expected fixed or free, found {text!r}")
    return known[text]


def _fault(name: str) -> Callable[[ServeCfg, str], ServeCfg]:
    return lambda old, text: replace(old, faults=replace(old.faults, **{name: float(text)}))


TWIN_OPTIONS: dict[str, Callable[[ServeCfg, str], ServeCfg]] = {
    "seed": lambda old, text: replace(old, seed=int(text)),
    "params": lambda old, text: replace(old, params=text),
    "lockstep": lambda old, text: replace(old, lockstep=_flag(text)),
    "base": lambda old, text: replace(old, base=_base(text)),
    "hz": lambda old, text: replace(old, command_hz=float(text)),
    "timeout": lambda old, text: replace(old, command_timeout_s=float(text)),
    "tap": lambda old, text: replace(old, tap=text),
    "drop": _fault("drop"),
    "duplicate": _fault("duplicate"),
    "reorder": _fault("reorder"),
    "corrupt": _fault("corrupt"),
}


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise TrueupError(f"the address of a twin is HOST:PORT, found {text!r}; `trueup twin serve` says which")
    return host, int(port)
