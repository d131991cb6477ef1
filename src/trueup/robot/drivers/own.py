"""A driver that the user brings: a Python file or module with a function that makes it.

    my_robot.py:make_driver?port=/dev/ttyUSB0      a file
    my_package.robot:make_driver                   an installed module

The function is called as make_driver(robot, command_hz, **options), options being strings, and returns a `base.Driver`,
not yet connected. Naming it on the command line is what allows it to run.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import cast
from urllib.parse import unquote

from trueup.core.errors import TrueupError, did_you_mean
from trueup.robot.drivers.base import Driver
from trueup.robot.load import Robot

_METHODS = ("connect", "read", "write", "damp", "close")
_ATTRIBUTES = ("joint_names", "realtime")


def is_own(reference: str) -> bool:
    """Whether a driver reference names a function of the user's: FILE.py:FUNCTION or MODULE:FUNCTION."""
    place, _, function = reference.partition("?")[0].rpartition(":")
    if not function.isidentifier() or place.endswith(".py"):
        return function.isidentifier()
    parts = place.split(".")
    return all(part.isidentifier() for part in parts) and importlib.util.find_spec(parts[0]) is not None


def make_own(reference: str, robot: Robot, command_hz: float) -> Driver:
    """Call the user's function and check that what it returns is a driver."""
    name, _, query = reference.partition("?")
    place, _, function = name.rpartition(":")
    module = _from_file(Path(place)) if place.endswith(".py") else _from_module(place)
    make = getattr(module, function, None)
    if not callable(make):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise TrueupError(f"{place} has no function {function!r}{did_you_mean(function, known)}", file=place)
    try:
        driver = make(robot, command_hz, **_options(query, reference))
    except TypeError as error:
        raise TrueupError(
            f"{name} is called as {function}(robot, command_hz, **options): {error}", file=place
        ) from error
    missing = [part for part in _METHODS + _ATTRIBUTES if not hasattr(driver, part)]
    if missing:
        raise TrueupError(
            f"what {name} returns is no driver: {type(driver).__name__} has no {', '.join(missing)}; "
            "see docs/record.md",
            file=place,
        )
    return cast(Driver, driver)


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise TrueupError("there is no such file to take a driver from", file=path)
    name = f"trueup_driver_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look for their module here
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's code: anything may come
        raise TrueupError(f"cannot be loaded: {type(error).__name__}: {error}", file=path) from error
    return module


def _from_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # the user's code: anything may come
        raise TrueupError(
            f"the module {name!r} cannot be loaded ({type(error).__name__}: {error}); is it installed here? "
            f"A file is named with its ending: {name.split('.')[-1]}.py:FUNCTION"
        ) from error


def _options(query: str, reference: str) -> dict[str, str]:
    options = {}
    for part in query.split("&") if query else []:
        key, equals, value = part.partition("=")
        if not key.isidentifier() or not equals:
            raise TrueupError(f"options of a driver are key=value&key=value, found {part!r}", place=reference)
        options[key] = unquote(value)
    return options
