"""A twin behind ROS 2 topics: states and IMU go out as messages, commands come in, gains are the twin's own.

`trueup twin serve so101 --speak ros2 --place lo` or, with options as the driver has them, `--place "lo?domain=7"`.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.drivers.ros2.bus import RosBus
from trueup.hardware.drivers.ros2.commands import CommandFormat
from trueup.hardware.drivers.ros2.messages import Bool, Header, Imu, JointState, Quaternion, Time, Vector3
from trueup.hardware.drivers.ros2.options import Ros2Cfg, read_options
from trueup.hardware.drivers.ros2.states import split_seconds
from trueup.hardware.twin_cfg import ServeCfg
from trueup.twin.firmware import Twin
from trueup.twin.real_time import ServedTwin

_DEFAULT_PLACE = "lo"


class Ros2Speaker(ServedTwin):
    """Serves a twin on ROS 2 topics in real time.

    A command acts from the moment it came in, with the gains of the robot's spec. A command that lacks a joint or holds
    what is not finite is refused and counted. `true` on the damp topic damps the twin for good, as an e-stop would.
    """

    def __init__(self, twin: Twin, cfg: ServeCfg) -> None:
        super().__init__(twin, cfg)
        spec = twin.robot.spec
        place = cfg.place or _DEFAULT_PLACE
        ros = _options(place, "/imu" if spec.imu is not None else "")
        self.reference = f"ros2:{place}"
        self._bus: RosBus | None = RosBus(ros.interface, ros.domain)
        self._format = CommandFormat(spec.joint_names, ros, cfg.command_hz)
        self._commands = self._bus.inbox(ros.command, self._format.message_type)
        self._states = self._bus.outbox(ros.state, JointState)
        self._imus = self._bus.outbox(ros.imu, Imu) if ros.imu else None
        self._stops = self._bus.inbox(ros.damp_topic, Bool) if ros.damp_topic else None
        self._names = list(spec.joint_names)
        self._gains = np.stack([spec.kp, spec.kd])
        self.is_stopped = False

    def close(self) -> None:
        """Leave the domain and close the tap. Safe to call twice."""
        self.stop()
        for name in ("_commands", "_states", "_imus", "_stops"):
            self.__dict__.pop(name, None)
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.close()
        super().close()

    def _listen_until(self, due: float, began: float) -> None:
        """Take in commands until the period ends; each at its own time within the period."""
        while True:
            left = due - time.perf_counter()
            self._commands.wait(max(left, 0.0))
            self._obey(self._steps_since(began))
            if left <= 0.0:
                return

    def _obey(self, ahead_steps: float) -> None:
        if self._stops is not None and any(message.data for message in self._stops.take()):
            self.is_stopped = True
            self.twin.damp()
        try:
            messages = self._commands.take()
        except TrueupError:  # bytes that are no message of this type
            self.twin.count("bad_frames")
            return
        for message in messages:
            try:
                rows = self._rows(message)
            except TrueupError:
                self.twin.count("commands")
                self.twin.count("malformed")
                continue
            if self._tap is not None:
                self._tap.command(rows)
            if not self.is_stopped:
                self.twin.command(rows, ahead_steps)

    def _rows(self, message: Any) -> FloatArray:
        """A command as the twin takes it, (5, n): position, velocity, kp, kd, torque."""
        targets = self._format.unpack(message)
        return np.stack([targets.position, targets.velocity, *self._gains, targets.effort])

    def _report(self) -> None:
        """The IMU first: whoever waits for the joints then has both of one instant."""
        state = self.twin.state()
        header = Header(Time(*split_seconds(state.time_s)))
        if self._imus is not None and state.imu_quat is not None:
            assert state.imu_gyro is not None
            assert state.imu_acc is not None
            w, x, y, z = state.imu_quat.tolist()
            gyro, acc = Vector3(*state.imu_gyro.tolist()), Vector3(*state.imu_acc.tolist())
            turn = Quaternion(x=x, y=y, z=z, w=w)
            self._imus.send(Imu(header, turn, angular_velocity=gyro, linear_acceleration=acc))
        numbers = (state.joint_pos.tolist(), state.joint_vel.tolist(), state.joint_torque.tolist())
        self._states.send(JointState(header, self._names, *numbers))


def _options(place: str, imu: str) -> Ros2Cfg:
    """`INTERFACE?key=value&...` as the driver's options."""
    interface, _, query = place.partition("?")
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise TrueupError(f"options are key=value&key=value, found {query!r}", place=place) from None
    return read_options(interface, options, imu=imu)
