"""Options of the ROS 2 driver: which network, which topics, which messages. No DDS here.

`ros2:eth0?state=/joint_states&imu=/imu&command=/joint_commands&kind=joint_state&domain=0`: the place is a network
interface, a domain number, or nothing (interface as CycloneDDS chooses).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from trueup.core.errors import TrueupError, did_you_mean

Kind = Literal["joint_state", "float64", "trajectory"]
_NAME = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
_INTERFACE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
MAX_DOMAIN = 232  # beyond it the UDP ports of DDS would pass 65535


@dataclass(frozen=True, kw_only=True)
class Ros2Cfg:
    """Where the topics are and what they carry.

    interface   network interface; "": as CycloneDDS chooses (CYCLONEDDS_URI is then obeyed)
    state, imu  topics to read; imu "" when the robot has none
    command     topic to write, messages of `kind`
    joints      order of the numbers in a float64 command, which carries no names; (): the robot spec's order
    reach_s     trajectory: time to reach a target; 0: one command period
    velocity    measured: the state must carry velocities; difference: positions are differentiated
    clock       stamp: the header's; arrival: the time at which a message came (for senders that leave stamps at zero)
    damp        hold: the position at the first `damp` is sent; follow: the position just measured, each time
    damp_topic  std_msgs/Bool topic to which every `damp` also publishes `true`
    timeout_s   time without a state after which reading fails; a tenth of it for the IMU
    listen      read what the robot reports and what others command; commands are refused
    """

    interface: str = ""
    domain: int = 0
    state: str = "/joint_states"
    imu: str = ""
    command: str = "/joint_commands"
    kind: Kind = "joint_state"
    joints: tuple[str, ...] = ()
    reach_s: float = 0.0
    velocity: Literal["measured", "difference"] = "measured"
    clock: Literal["stamp", "arrival"] = "stamp"
    damp: Literal["hold", "follow"] = "hold"
    damp_topic: str = ""
    timeout_s: float = 2.0
    listen: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.domain <= MAX_DOMAIN:
            raise TrueupError(f"a DDS domain lies between 0 and {MAX_DOMAIN}, found {self.domain}", place="domain")
        if self.interface and not _INTERFACE.fullmatch(self.interface):
            raise TrueupError(f"{self.interface!r} is no name of a network interface", place="interface")
        for name in ("state", "command", "imu", "damp_topic"):
            topic = getattr(self, name)
            if (topic or name in ("state", "command")) and not _NAME.fullmatch(topic):
                raise TrueupError(f"{topic!r} is no ROS topic: letters, digits and '_' between slashes", place=name)
        if not 0.0 < self.timeout_s <= 60.0 or not 0.0 <= self.reach_s <= 60.0:
            raise TrueupError(f"times lie between 0 and 60 s, found timeout {self.timeout_s}, reach {self.reach_s}")
        for name in ("kind", "velocity", "clock", "damp"):
            known = get_args(get_type_hints(Ros2Cfg)[name])
            if getattr(self, name) not in known:
                raise TrueupError(f"no {name} {getattr(self, name)!r}{did_you_mean(getattr(self, name), known)}")


def topic_on_wire(name: str) -> str:
    """The DDS topic of a ROS topic: `/joint_states` is `rt/joint_states`."""
    return f"rt/{name.removeprefix('/')}"


def read_options(place: str, options: dict[str, str], *, imu: str = "") -> Ros2Cfg:
    """Parse options; the default domain is ROS_DOMAIN_ID's, else 0.

    `imu` is the topic to read when the options name none.
    """
    given: dict[str, Any] = {"imu": imu, "domain": os.environ.get("ROS_DOMAIN_ID") or "0"} | options
    given |= {"domain": place} if place.isdecimal() else {"interface": place}
    if "domain" in options and place.isdecimal():
        raise TrueupError(f"the domain is said twice: {place} and {options['domain']}", place=f"ros2:{place}")
    hints = get_type_hints(Ros2Cfg)
    values: dict[str, Any] = {}
    for key, text in given.items():
        if key not in hints:
            raise TrueupError(f"driver 'ros2' has no option {key!r}{did_you_mean(key, hints)}", place=f"ros2:{place}")
        raw = tuple(name for name in text.split(",") if name) if key == "joints" else text
        try:
            values[key] = msgspec.convert(raw, hints[key], strict=False)
        except msgspec.ValidationError:
            words = {int: "a whole number", float: "a number", bool: "0 or 1"}.get(
                hints[key]
            ) or f"one of {_choices(hints[key])}"
            raise TrueupError(f"option {key!r} takes {words}, found {text!r}", place=f"ros2:{place}") from None
    return Ros2Cfg(**values)


def _choices(hint: Any) -> str:
    return ", ".join(str(choice) for choice in get_args(hint))
