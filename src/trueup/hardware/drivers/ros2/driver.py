"""`ros2:INTERFACE?state=/joint_states&command=/joint_commands`: a robot behind ROS 2 topics, over DDS alone.

Three things a user must know (docs/drivers/ros2.md):
- Servo gains do not travel. The robot keeps its own; `write` reports those of the robot's spec as sent, and a joint
  that is commanded with kp = 0 is sent its measured position, because "no stiffness" cannot be said.
- ROS has no damping. `damp` holds the joints where they are (`damp=hold`) or lets them creep (`damp=follow`), and tells
  `damp_topic` if there is one.
- Nothing is sent before the first `write` or `damp`, so a connected driver may watch a robot that another one commands.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, ConnectedWithin, RobotState, connected
from trueup.hardware.drivers.dds import require_cyclonedds
from trueup.hardware.drivers.ros2.options import Ros2Cfg, read_options
from trueup.robot.load import Robot

if TYPE_CHECKING:
    from trueup.hardware.drivers.dds import Inbox, Outbox
    from trueup.hardware.drivers.ros2.bus import RosBus
    from trueup.hardware.drivers.ros2.commands import CommandFormat, CommandTargets
    from trueup.hardware.drivers.ros2.feed import Feed

RECENT_S = 1.0  # a commander that is silent for longer counts as gone
MATCH_S = 1.0  # for DDS to bring a writer and a reader together


def make_driver(
    robot: Robot,
    command_hz: float,
    place: str,
    *,
    domain: str = "",
    state: str = "/joint_states",
    imu: str | None = None,
    command: str = "/joint_commands",
    kind: str = "joint_state",
    joints: str = "",
    reach_s: str = "0",
    velocity: str = "measured",
    clock: str = "stamp",
    damp: str = "hold",
    damp_topic: str = "",
    timeout_s: str = "2",
    listen: str = "0",
) -> Ros2Driver:
    """A driver from a reference's options; a robot whose spec names an IMU reads /imu unless an option changes it."""
    options = {"state": state, "command": command, "kind": kind, "joints": joints, "reach_s": reach_s}
    options |= {"velocity": velocity, "clock": clock, "damp": damp, "damp_topic": damp_topic, "timeout_s": timeout_s}
    options["listen"] = listen
    options |= {"domain": domain} if domain else {}
    options |= {} if imu is None else {"imu": imu}
    cfg = read_options(place, options, imu="/imu" if robot.spec.imu is not None else "")
    return Ros2Driver(robot, cfg, command_hz=command_hz)


class Ros2Driver(ConnectedWithin):
    """A `Driver` for ROS 2 topics.

    sends_gains      False: kp and kd of a command do not reach the robot
    other_commander  who else commands the robot, in words; None when nobody did within the last second, or listen=1
    """

    realtime = True
    sends_gains = False

    def __init__(self, robot: Robot, cfg: Ros2Cfg, *, command_hz: float) -> None:
        self.joint_names, self.command_hz, self.cfg = robot.spec.joint_names, command_hz, cfg
        self._spec = robot.spec
        self._link: _Link | None = None
        self._has_sent = False
        self._held: FloatArray | None = None  # the position that `damp` holds
        self._other: tuple[float, Any] | None = None  # when the newest command of another came, and the message

    # --- Driver ---
    def connect(self) -> None:
        """Join the domain and wait for the first state; nothing is sent."""
        if self._link is not None:
            raise TrueupError("this driver is connected already")
        link = _Link.open(self.joint_names, self.cfg, self.command_hz)
        try:
            link.feed.await_first()
        except BaseException:
            link.bus.close()
            raise
        self._link, self._held, self._other, self._has_sent = link, None, None, False

    def read(self) -> RobotState:
        return connected(self._link).feed.next()

    def write(self, command: Command) -> Command:
        """Send a command; returns the message's targets with the gains of the robot's spec."""
        link = connected(self._link)
        position, velocity, kp, _, torque = command.finite_rows(self.joint_names)
        is_free = kp == 0.0
        if is_free.any():  # "no stiffness" cannot be sent: such a joint gets its measured position
            position = np.where(is_free, link.feed.position(), position)
        self._held = None
        return self._send(link, np.stack([position, velocity, torque]))

    def damp(self) -> Command:
        """Stop: hold the joints (or follow them down), and tell the damp topic. ROS itself has no damping."""
        link = connected(self._link)
        if not self.cfg.listen:
            link.stop()
        if self._held is None or self.cfg.damp == "follow":
            self._held = link.feed.position()
        zero = np.zeros(len(self.joint_names))
        return self._send(link, np.stack([self._held, zero, zero]))

    def close(self) -> None:
        """Damp, unless this driver never sent anything, and let go. Safe to call twice."""
        if self._link is not None and self._has_sent:
            with contextlib.suppress(TrueupError):
                self.damp()
        if self._link is not None:
            self._link.bus.close()
        self._link = None

    # --- what others send ---
    @property
    def other_commander(self) -> str | None:
        """Who else has written to the command topic within the last second."""
        if self.cfg.listen or self._look_at_others() is None:
            return None
        link = connected(self._link)
        count = link.others.senders
        return f"{count or 'an'} other publisher{'s' * (count > 1)} on {self.cfg.command}, {link.bus.place}"

    def observe(self) -> tuple[RobotState, Command | None]:
        """Return the newest state and the command of another publisher, None when it was silent for a second."""
        link = connected(self._link)
        state, message = link.feed.next(), self._look_at_others()
        return state, None if message is None else self._command(*link.format.unpack(message))

    def _look_at_others(self) -> Any:
        found, now = connected(self._link).others.take(), time.monotonic()
        if found:
            self._other = now, found[-1]
        return self._other[1] if self._other is not None and now - self._other[0] < RECENT_S else None

    # --- commands ---
    def _send(self, link: _Link, targets: FloatArray) -> Command:
        """Send (3, n) targets; a robot that does not listen is an error, at the first command after a while."""
        if self.cfg.listen:
            raise TrueupError(f"this driver listens only (listen=1): nothing is sent on {self.cfg.command}")
        link.await_listener(0.0 if self._has_sent else MATCH_S, self.cfg.command)
        sent = link.send(targets)
        self._has_sent = True
        return self._command(*sent)

    def _command(self, position: FloatArray, velocity: FloatArray, effort: FloatArray) -> Command:
        """Targets with the gains of the robot's spec."""
        return Command(target_pos=position, target_vel=velocity, kp=self._spec.kp, kd=self._spec.kd, torque=effort)


class _Link(NamedTuple):
    """Resources of a connected driver."""

    bus: RosBus
    feed: Feed
    others: Inbox
    commands: Outbox
    stops: Outbox | None
    format: CommandFormat

    @classmethod
    def open(cls, joint_names: tuple[str, ...], cfg: Ros2Cfg, command_hz: float) -> _Link:
        """Join the domain."""
        require_cyclonedds("ros")
        from trueup.hardware.drivers.ros2.bus import RosBus
        from trueup.hardware.drivers.ros2.commands import CommandFormat
        from trueup.hardware.drivers.ros2.feed import Feed
        from trueup.hardware.drivers.ros2.messages import Bool

        made = CommandFormat(joint_names, cfg, command_hz)
        bus = RosBus(cfg.interface, cfg.domain)
        return cls(
            bus=bus,
            feed=Feed(bus, joint_names, cfg),
            others=bus.inbox(cfg.command, made.message_type, others_only=True),
            commands=bus.outbox(cfg.command, made.message_type),
            stops=bus.outbox(cfg.damp_topic, Bool) if cfg.damp_topic else None,
            format=made,
        )

    def await_listener(self, seconds: float, topic: str) -> None:
        """Wait until a reader of the commands is matched."""
        end = time.monotonic() + seconds
        while not self.commands.listeners:
            if time.monotonic() >= end:
                kind = self.format.message_type.__name__
                found = f"nobody listens to {kind} messages on {topic} ({self.bus.place})"
                raise TrueupError(f"{found}: is the controller running, and is it one of this kind?")
            time.sleep(0.005)

    def send(self, targets: FloatArray) -> CommandTargets:
        """Send (3, n) targets; returns those in the message."""
        from trueup.hardware.drivers.ros2.commands import CommandTargets

        message, sent = self.format.pack(CommandTargets(*targets), time.time())
        self.commands.send(message)
        return sent

    def stop(self) -> None:
        """Tell the damp topic, if there is one."""
        from trueup.hardware.drivers.ros2.messages import Bool

        if self.stops is not None:
            self.stops.send(Bool(data=True))
