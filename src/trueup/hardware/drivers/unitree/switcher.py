"""Releasing the robot's own motion service ("sport mode"), which would else command the same motors.

Service motion_switcher: CheckMode 1001 answers {"form": "0", "name": "normal"}, with an empty name when no motion
service runs; SelectMode 1002 starts one, ReleaseMode 1003 ends it. A robot that stands falls when it is released, so
quadrupeds are told to lie down first (service sport, StandDown 1005), as Unitree's own examples do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import msgspec

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.dds import DdsBus
from trueup.hardware.drivers.unitree.rpc import Client

_log = logging.getLogger(__name__)
CHECK_MODE, SELECT_MODE, RELEASE_MODE = 1001, 1002, 1003
STAND_DOWN = 1005
SWITCHER, SPORT = "motion_switcher", "sport"
_PAUSE_S = 0.2


class _Mode(msgspec.Struct):
    name: str = ""


def release_sport_mode(
    bus: DdsBus, *, lie_down: Callable[[], None] | None, timeout_s: float, pause_s: float = _PAUSE_S
) -> str:
    """End the motion service; returns its name, "" when none ran.

    `lie_down` waits until a robot has lain down; None: it is released as it is.
    """
    switcher = Client(bus, SWITCHER)
    end = time.monotonic() + timeout_s
    first = name = _mode(switcher, timeout_s)
    if name and lie_down is not None:
        _stand_down(bus, timeout_s)
        lie_down()
        end = time.monotonic() + timeout_s
    while name:
        if time.monotonic() > end:
            raise TrueupError(
                f"the robot's motion service {name!r} was told to end and still runs after {timeout_s:g} s; "
                "end it with the remote control or the app"
            )
        switcher.call(RELEASE_MODE, timeout_s=timeout_s)
        time.sleep(pause_s)
        name = _mode(switcher, timeout_s)
    if first:
        _log.info("motion service %r released", first)
    return first


def _mode(switcher: Client, timeout_s: float) -> str:
    """Name of the motion service that runs."""
    try:
        code, data = switcher.call(CHECK_MODE, timeout_s=timeout_s)
    except TrueupError as error:
        raise TrueupError(
            f"{error.message}: whether its sport mode runs is unknown, so nothing is commanded; end sport mode "
            "with the remote control or the app and use the option release=0"
        ) from None
    if code != 0:
        raise TrueupError(f"the robot does not say which motion service runs (code {code}); see option release=0")
    try:
        return msgspec.json.decode(data, type=_Mode).name
    except msgspec.MsgspecError:
        raise TrueupError(f"the robot's motion switcher answered {data[:80]!r}, expected JSON with a name") from None


def _stand_down(bus: DdsBus, timeout_s: float) -> None:
    """Tell a quadruped to lie down."""
    try:
        code = Client(bus, SPORT).call(STAND_DOWN, timeout_s=timeout_s).code
    except TrueupError as error:
        raise TrueupError(
            f"{error.message}: it cannot be told to lie down before it is released; hang it or lay it down "
            "and use the option stand_down=0"
        ) from None
    if code != 0:
        _log.warning("the robot answered StandDown with code %d", code)
