"""A driver that the user brings: a Python file or module with a function that makes it.

    my_robot.py:make_driver?port=/dev/ttyUSB0      a file
    my_package.robot:make_driver                   an installed module

The function is called as make_driver(robot, command_hz, **options), options being strings, and returns a `base.Driver`,
not yet connected. Naming it on the command line is what allows it to run.
"""

from __future__ import annotations

from typing import cast
from urllib.parse import unquote

from trueup.core.errors import TrueupError
from trueup.core.own_code import is_own_code, own_function
from trueup.hardware.driver import Driver
from trueup.robot.load import Robot

_METHODS = ("connect", "read", "write", "damp", "close")
_ATTRIBUTES = ("joint_names", "realtime")


def is_own(reference: str) -> bool:
    """Whether a driver reference names a function of the user's: FILE.py:FUNCTION or MODULE:FUNCTION."""
    return is_own_code(reference.partition("?")[0])


def make_own(reference: str, robot: Robot, command_hz: float) -> Driver:
    """Call the user's function and check that what it returns is a driver."""
    name, _, query = reference.partition("?")
    place, _, function = name.rpartition(":")
    make = own_function(name)
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


def _options(query: str, reference: str) -> dict[str, str]:
    options = {}
    for part in query.split("&") if query else []:
        key, equals, value = part.partition("=")
        if not key.isidentifier() or not equals:
            raise TrueupError(f"options of a driver are key=value&key=value, found {part!r}", place=reference)
        options[key] = unquote(value)
    return options
