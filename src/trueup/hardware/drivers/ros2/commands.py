"""Commands as ROS 2 messages, and back: JointState, Float64MultiArray or JointTrajectory.

joint_state   names, positions, velocities (servo targets), efforts (feed-forward torque)
float64       positions alone, without names: the order is the controller's `joints` parameter
trajectory    names and one point of positions, to be reached in `reach_s`. A last point with velocities is
              refused by joint_trajectory_controller as it comes, so none are sent

No such message has a place for servo gains: kp and kd stay the robot's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.hardware.drivers.ros2 import messages
from trueup.hardware.drivers.ros2.options import Ros2Cfg
from trueup.hardware.drivers.ros2.states import NameOrder, split_seconds

MESSAGE_TYPES: dict[str, type[Any]] = {
    "joint_state": messages.JointState,
    "float64": messages.Float64MultiArray,
    "trajectory": messages.JointTrajectory,
}


class CommandTargets(NamedTuple):
    """Targets of a command message in spec order: rad, rad/s, N m; zero where the message has no such field."""

    position: FloatArray
    velocity: FloatArray
    effort: FloatArray


class CommandFormat:
    """Packs targets into the messages of one topic and reads them back."""

    def __init__(self, joint_names: tuple[str, ...], cfg: Ros2Cfg, command_hz: float) -> None:
        self._names, self._kind, self._topic = joint_names, cfg.kind, cfg.command
        self.message_type = MESSAGE_TYPES[cfg.kind]
        self._controller_order = _controller_order(joint_names, cfg)
        self._reach = messages.Duration(*split_seconds(cfg.reach_s or 1.0 / command_hz))
        self._order = NameOrder(joint_names, cfg.command)

    def pack(self, targets: CommandTargets, time_s: float) -> tuple[Any, CommandTargets]:
        """A message stamped with the sender's clock, and the part of `asked` that it carries."""
        header = messages.Header(messages.Time(*split_seconds(time_s)))
        names, position = list(self._names), targets.position.tolist()
        if self._kind == "joint_state":
            made = messages.JointState(header, names, position, targets.velocity.tolist(), targets.effort.tolist())
            return made, targets
        zero = np.zeros_like(targets.position)
        sent = CommandTargets(targets.position, zero, zero)
        if self._kind == "float64":
            return messages.Float64MultiArray(data=targets.position[self._controller_order].tolist()), sent
        point = messages.JointTrajectoryPoint(positions=position, time_from_start=self._reach)
        # a zero stamp means "now": clocks of two computers need not agree
        return messages.JointTrajectory(messages.Header(), names, [point]), sent

    def unpack(self, message: Any) -> CommandTargets:
        """Targets of a message for our joints; a missing joint is refused by name."""
        if self._kind == "joint_state":
            return self._by_name(message.name, message.position, message.velocity, message.effort)
        if self._kind == "trajectory":
            if not message.points:
                raise TrueupError("a trajectory without points", place=self._topic)
            last = message.points[-1]
            return self._by_name(message.joint_names, last.positions, last.velocities, last.effort)
        if len(message.data) != len(self._names):
            found = f"a command of {len(message.data)} numbers for {len(self._names)} joints"
            raise TrueupError(found, place=self._topic)
        position = np.zeros(len(self._names))
        position[self._controller_order] = message.data
        return CommandTargets(position, np.zeros(len(self._names)), np.zeros(len(self._names)))

    def _by_name(self, names: Sequence[str], *columns: Sequence[float]) -> CommandTargets:
        order = self._order.find(names)
        if order is None:
            raise TrueupError("a command for joints of another robot", place=self._topic)
        if not columns[0] or any(len(column) not in (0, len(names)) for column in columns):
            found = f"a command with {len(names)} names and {', '.join(str(len(c)) for c in columns)} values"
            raise TrueupError(found, place=self._topic)
        zero = np.zeros(len(order))
        return CommandTargets(*(np.array(column, np.float64)[order] if column else zero for column in columns))


def _controller_order(joint_names: tuple[str, ...], cfg: Ros2Cfg) -> list[int]:
    """Spec index of each number of a command without names."""
    if not cfg.joints:
        return list(range(len(joint_names)))
    for name in cfg.joints:
        if name not in joint_names:
            raise TrueupError(f"option joints: no joint {name!r}{did_you_mean(name, joint_names)}", place="joints")
    if len(set(cfg.joints)) != len(cfg.joints) or len(cfg.joints) != len(joint_names):
        raise TrueupError(f"option joints lists {len(cfg.joints)} names for {len(joint_names)} joints", place="joints")
    return [joint_names.index(name) for name in cfg.joints]
