"""Finds a robot class of LeRobot (or one with its interface) and builds it from options of a user."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.own_code import own_function
from trueup.data.lerobot.units import UNITS

_METHODS = ("connect", "get_observation", "send_action", "disconnect")
_PROPERTIES = ("is_calibrated", "is_connected", "observation_features", "action_features")


def make_robot(place: str, options: dict[str, str], units: str) -> tuple[Any, str]:
    """The robot object, not connected, and the units of its numbers.

    Where the class's config has `use_degrees` it is set to what `units` says (degrees if nothing was said); another
    class must be told its units.
    """
    robot_class, config_class = _own_class(place) if ":" in place else _lerobot_class(place)
    known = {field.name for field in fields(config_class)} if is_dataclass(config_class) else set(options)
    for key in options:
        if key not in known:
            raise TrueupError(f"{place} has no option {key!r}{did_you_mean(key, sorted(known))}", place="lerobot")
    given: dict[str, Any] = dict(options)
    if "use_degrees" in known:
        units = units or "degrees"
        given["use_degrees"] = units == "degrees"
    if units not in UNITS or ("use_degrees" in known and units == "radians"):
        text = f"found {units!r}" if units else "its class does not say"
        raise TrueupError(f"say the units of {place}: units=degrees, normalised or radians ({text})", place="lerobot")
    try:
        if "max_relative_target" in given:
            given["max_relative_target"] = float(given["max_relative_target"])
        if "calibration_dir" in given:
            given["calibration_dir"] = Path(given["calibration_dir"])
        made = robot_class(config_class(**given))
    except Exception as error:  # foreign code: any exception is possible
        raise TrueupError(f"{place} cannot be made: {type(error).__name__}: {error}", place="lerobot") from error
    missing = [part for part in _METHODS + _PROPERTIES if not hasattr(type(made), part)]
    if missing:
        raise TrueupError(f"{place} is no robot of LeRobot: it has no {', '.join(missing)}", place="lerobot")
    return made, units


def _own_class(place: str) -> tuple[Any, Any]:
    """`module:Class` or `file.py:Class`; its config_class makes its config."""
    found = own_function(place)
    config = getattr(found, "config_class", None)
    if config is None:
        raise TrueupError(f"{place} has no config_class, as robots of LeRobot have", place="lerobot")
    return found, config


def _lerobot_class(name: str) -> tuple[Any, Any]:
    """A robot type that an installed LeRobot knows: a function that makes it from its config, and the config."""
    try:
        robots: Any = importlib.import_module("lerobot.robots")
    except Exception as error:  # its imports reach far
        text = f"LeRobot cannot be imported here ({type(error).__name__}: {error})"
        raise TrueupError(f"{text}; install it as its own page says: pip install 'lerobot[feetech]'") from error
    # a type registers itself on import; folders whose packages are not installed are skipped
    folders = [found.name for found in pkgutil.iter_modules(robots.__path__) if found.ispkg]
    reasons = []
    for folder in sorted(folders, key=lambda path: -difflib.SequenceMatcher(None, path, name).ratio()):
        if name in robots.RobotConfig.get_known_choices():
            break
        try:
            importlib.import_module(f"lerobot.robots.{folder}")
        except Exception as error:
            reasons.append(f"{folder}: {error}")
    known = robots.RobotConfig.get_known_choices()
    if name not in known:
        more = f"; could not import {'; '.join(reasons)[:300]}" if reasons else ""
        raise TrueupError(f"LeRobot has no robot {name!r}{did_you_mean(name, sorted(known))}{more}", place="lerobot")
    return robots.make_robot_from_config, known[name]
