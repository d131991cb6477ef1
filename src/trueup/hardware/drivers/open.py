"""Opens the driver that a reference after --driver names.

twin:harmonic                      start a twin in the background, in real time
twin:harmonic?seed=7&lockstep=1    options after a question mark (see TWIN_OPTIONS)
twin:ideal?seed=3&params=fit/      a twin of a calibrated robot: drawn from the fit's posterior
twin:my/preset.toml                a preset of your own
twin@127.0.0.1:7000                a twin that is running
unitree:eth0                       a go2, b2 or g1 over DDS; others of SCHEMES likewise
my_robot.py:make_driver?port=x     a driver of your own; or my_package.robot:make_driver

A driver of your own comes from a function that is called as make_driver(robot, command_hz, **options), options being
strings, and returns a `Driver`, not yet connected. Naming it on the command line is what allows it to run.
"""

from __future__ import annotations

from dataclasses import fields, replace
from importlib import import_module
from inspect import signature
from typing import Any, Literal, cast
from urllib.parse import quote, unquote

import msgspec

from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.own_code import is_own_code, own_function
from trueup.hardware.driver import Driver
from trueup.hardware.drivers.twin import TwinDriver
from trueup.hardware.twin_cfg import FaultCfg, ServeCfg
from trueup.robot.load import Robot

KINDS = {
    "twin:PRESET[?seed=7&lockstep=1]": "a virtual robot, started in the background",
    "twin@HOST:PORT": "a virtual robot that is running (`trueup twin serve`)",
    "unitree:INTERFACE": "go2, b2 or g1 over DDS (docs/drivers/unitree.md)",
    "feetech:PORT, dynamixel:PORT": "servos on a serial line (docs/drivers/feetech.md, dynamixel.md)",
    "ros2:INTERFACE": "ROS 2 topics, without a ROS installation (docs/drivers/ros2.md)",
    "lerobot:CLASS": "a robot class of LeRobot (docs/drivers/lerobot.md)",
    "FILE.py:FUNCTION or MODULE:FUNCTION": "your own driver (docs/record.md)",
}
# scheme -> function that is called as make(robot, command_hz, place, **options); place stands between ":" and "?"
_DRIVERS = "trueup.hardware.drivers"
SCHEMES = {
    "unitree": f"{_DRIVERS}.unitree.driver:make_driver",
    "feetech": f"{_DRIVERS}.servos.driver:make_feetech",
    "dynamixel": f"{_DRIVERS}.servos.driver:make_dynamixel",
    "ros2": f"{_DRIVERS}.ros2.driver:make_driver",
    "lerobot": f"{_DRIVERS}.lerobot:make_driver",
}
_FAULTS = tuple(field.name for field in fields(FaultCfg))
# key in a reference -> field of `ServeCfg` (or `FaultCfg`), its type, and the type in words
TWIN_OPTIONS: dict[str, tuple[str, Any, str]] = {
    "seed": ("seed", int, "a whole number"),
    "params": ("params", str, "a folder"),
    "lockstep": ("lockstep", bool, "0 or 1"),
    "base": ("base", Literal["fixed", "free"], "fixed or free"),
    "hz": ("command_hz", float, "a number"),
    "timeout": ("command_timeout_s", float, "a number"),
    "tap": ("tap", str, "a file"),
    **{fault: (fault, float, "a number") for fault in _FAULTS},
}
_DRIVER_PARTS = ("connect", "read", "write", "damp", "close", "joint_names", "realtime")


def open_driver(
    reference: str, robot: Robot, *, command_hz: float | None = None, lockstep: bool | None = None
) -> Driver:
    """Return the driver that `reference` names, not yet connected.

    `command_hz` and `lockstep` are the defaults of a twin started here; options of the reference override them.
    """
    check_reference(reference)
    if reference.startswith("twin:"):
        wanted = ServeCfg(lockstep=bool(lockstep))
        if command_hz is not None:
            wanted = replace(wanted, command_hz=command_hz)
        return TwinDriver(robot, twin_options(reference.removeprefix("twin:"), wanted))
    if reference.startswith("twin@"):
        return TwinDriver(robot, address=_address(reference.removeprefix("twin@")))
    if reference.partition(":")[0] in SCHEMES and ":" in reference:
        return _known_driver(reference, robot, command_hz if command_hz is not None else robot.spec.control_hz)
    return _own_driver(reference, robot, command_hz if command_hz is not None else robot.spec.control_hz)


def check_reference(reference: str) -> None:
    """Refuse an unknown kind of driver or an unknown option of a twin. Imports and opens nothing."""
    if reference.startswith("twin:"):
        twin_options(reference.removeprefix("twin:"))
    elif reference.startswith("twin@"):
        _address(reference.removeprefix("twin@"))
    elif not (":" in reference and reference.partition(":")[0] in SCHEMES) and not is_own_code(
        reference.partition("?")[0]
    ):
        near = did_you_mean(f"{reference.partition(':')[0]}:", [f"{scheme}:" for scheme in ("twin", *SCHEMES)])
        known = "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items())
        raise TrueupError(f"no driver {reference!r}{near if 'mean' in near else f'; known are {known}'}")


def twin_options(text: str, wanted: ServeCfg | None = None) -> ServeCfg:
    """Parse `PRESET?key=value&...`; fields without a key stay as in `wanted`."""
    wanted = wanted or ServeCfg()
    preset, _, query = text.partition("?")
    if not preset:
        raise TrueupError("a twin needs a preset: twin:mild, twin:harmonic, twin:my/preset.toml")
    options: dict[str, Any] = {"preset": preset}
    faults: dict[str, float] = {}
    for key, value in _options(query, f"twin:{text}").items():
        if key not in TWIN_OPTIONS:
            raise TrueupError(f"a twin has no option {key!r}{did_you_mean(key, TWIN_OPTIONS)}", place=f"twin:{text}")
        field, kind, words = TWIN_OPTIONS[key]
        try:
            (faults if key in _FAULTS else options)[field] = msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError:
            message = f"option {key!r} of a twin takes {words}, found {value!r}"
            raise TrueupError(message, place=f"twin:{text}") from None
    return replace(wanted, **options, faults=replace(wanted.faults, **faults))


def same_twin(reference: str) -> str:
    """Return a twin's reference reduced to the options that define its robot; "" for drivers that start no twin."""
    if not reference.startswith("twin:"):
        return ""
    try:
        options = twin_options(reference.removeprefix("twin:"))
    except TrueupError:
        return ""
    base = "" if options.base == ServeCfg().base else f"&base={options.base}"
    fit = "" if options.params is None else f"&params={quote(options.params)}"
    return f"twin:{options.preset}?seed={options.seed}{base}{fit}"


def _known_driver(reference: str, robot: Robot, command_hz: float) -> Driver:
    """The driver of a scheme; an option that it does not have is refused by name."""
    scheme, _, rest = reference.partition(":")
    place, _, query = rest.partition("?")
    module, function = SCHEMES[scheme].split(":")
    make = getattr(import_module(module), function)
    options = _options(query, reference)
    known = [name for name in signature(make).parameters if name not in ("robot", "command_hz", "place")]
    for key in options:
        if key not in known:
            found = f"driver {scheme!r} has no option {key!r}{did_you_mean(key, known)}"
            raise TrueupError(f"{found}; it has {', '.join(known) or 'none'}", place=reference)
    return cast(Driver, make(robot, command_hz, place, **options))


def _own_driver(reference: str, robot: Robot, command_hz: float) -> Driver:
    """Call the user's function and check that its result is a driver."""
    name, _, query = reference.partition("?")
    place, _, function = name.rpartition(":")
    make = own_function(name)
    try:
        driver = make(robot, command_hz, **_options(query, reference))
    except TypeError as error:
        message = f"{name} is called as {function}(robot, command_hz, **options): {error}"
        raise TrueupError(message, file=place) from error
    missing = ", ".join(part for part in _DRIVER_PARTS if not hasattr(driver, part))
    if missing:
        found = f"what {name} returns is no driver: {type(driver).__name__} has no {missing}"
        raise TrueupError(f"{found}; see docs/record.md", file=place)
    return cast(Driver, driver)


def _options(query: str, reference: str) -> dict[str, str]:
    options = {}
    for part in query.split("&") if query else []:
        key, equals, value = part.partition("=")
        if not key.isidentifier() or not equals:
            raise TrueupError(f"options of a driver are key=value&key=value, found {part!r}", place=reference)
        options[key] = unquote(value)
    return options


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise TrueupError(f"the address of a twin is HOST:PORT, found {text!r}; `trueup twin serve` says which")
    return host, int(port)
