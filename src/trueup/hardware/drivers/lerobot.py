"""`lerobot:so101_follower?port=/dev/ttyACM0&id=my_arm`: a robot class of LeRobot as our driver.

The place is a robot type of LeRobot (`so101_follower`, `koch_follower`, ...) or `module:Class`, a class with LeRobot's
interface: config_class, connect(calibrate), get_observation(), send_action(), disconnect(). What follows from theirs:
- Positions only. Velocities are differences of positions unless the class reports `<joint>.vel`; torques are NaN.
- Servo gains are what the class sets (P 16 on an SO-101): kp and kd of a command do not travel. A joint that is
  commanded with kp = 0 is sent its measured position.
- No damping. `damp` holds the joints where they are, or (damp=limp) switches torque off. LeRobot's `disconnect`
  switches torque off, so the arm sinks at the end unless it rests.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.data.lerobot.info import joint_of
from trueup.data.lerobot.units import AngleScale, MotorRange, find_scale, read_calibration
from trueup.hardware.driver import Command, ConnectedWithin, RobotState, connected
from trueup.hardware.drivers.lerobot_class import make_robot
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec

_DAMP = ("hold", "limp")


def make_driver(
    robot: Robot,
    command_hz: float,
    place: str,
    *,
    port: str = "",
    id: str = "",
    units: str = "",
    calibration: str = "",
    calibration_dir: str = "",
    max_relative_target: str = "",
    damp: str = "hold",
) -> LerobotDriver:
    """A driver from a reference's options; empty options are left to the class's own config."""
    if damp not in _DAMP:
        raise TrueupError(f"no damp {damp!r}{did_you_mean(damp, _DAMP)}", place=f"lerobot:{place}")
    given = {"port": port, "id": id, "calibration_dir": calibration_dir, "max_relative_target": max_relative_target}
    made, found_units = make_robot(place, {key: value for key, value in given.items() if value}, units)
    ranges = read_calibration(Path(calibration)) if calibration else None
    return LerobotDriver(robot, made, units=found_units, command_hz=command_hz, ranges=ranges, damp=damp)


class LerobotDriver(ConnectedWithin):
    """A `Driver` around a robot object of LeRobot. Calls to it are made one at a time: its bus knows no threads."""

    realtime = True
    sends_gains = False

    def __init__(
        self,
        robot: Robot,
        lerobot: Any,
        *,
        units: str,
        command_hz: float,
        ranges: dict[str, MotorRange] | None = None,
        damp: str = "hold",
    ) -> None:
        self.joint_names, self.command_hz = robot.spec.joint_names, command_hz
        self._spec: RobotSpec = robot.spec
        self._robot, self._units, self._ranges, self._damp = lerobot, units, ranges, damp
        self._lock = threading.Lock()
        self._scale: AngleScale | None = None
        self._keys: dict[str, str] = {}  # joint -> key of LeRobot's dictionaries, without ".pos"
        self._newest: RobotState | None = None
        self._due = 0.0
        self._held: FloatArray | None = None
        self._is_limp = self._has_sent = False

    # --- Driver ---
    def connect(self) -> None:
        """Open the bus without calibrating. LeRobot switches the servos' torque on here; they hold where they are."""
        if self._scale is not None:
            raise TrueupError("this driver is connected already")
        self._keys = self._matched()
        self._call("connect", lambda: self._robot.connect(calibrate=False))
        try:
            if not self._call("is_calibrated", lambda: bool(self._robot.is_calibrated)):
                hint = "run lerobot-calibrate with the same id, or give calibration_dir"
                raise TrueupError(f"{self._name()} is not calibrated: its angles mean nothing; {hint}")
            limits = self._spec.position_low, self._spec.position_high
            self._scale = find_scale(self._units, self.joint_names, *limits, self._ranges or self._own_ranges())
            self.read()
        except BaseException:
            self._let_go()
            raise

    def read(self) -> RobotState:
        """Read the servos, at most `command_hz` times a second: an earlier call waits."""
        scale = connected(self._scale)
        time.sleep(max(0.0, self._due - time.monotonic()))
        began = time.monotonic()
        seen = self._call("get_observation", self._robot.get_observation)
        now = 0.5 * (began + time.monotonic())
        self._due = began + 1.0 / self.command_hz
        position = scale.to_rad(self._column(seen, ".pos"))
        blank = np.full(len(position), np.nan)
        self._newest = RobotState(
            sequence=1 if self._newest is None else self._newest.sequence + 1,
            time_s=now,
            joint_pos=position,
            joint_vel=self._velocity(seen, scale, position, now),
            joint_torque=blank,
            joint_temperature=blank,
            voltage=float("nan"),
        )
        return self._newest

    def write(self, command: Command) -> Command:
        """Send target positions; returns those that LeRobot reports as sent, with the gains of the robot's spec."""
        target, _, kp, _, _ = command.finite_rows(self.joint_names)
        self._held = None
        free = kp == 0.0
        if free.any():  # "no stiffness" cannot be sent: such a joint gets its measured position
            target = np.where(free, self._position(), target)
        return self._send(target)

    def damp(self) -> Command:
        """Hold the joints where they were at the first call; damp=limp: torque off."""
        if self._held is None:
            self._held = self._position()
        if self._damp == "limp":
            self._call("disable_torque", self._robot.bus.disable_torque)
            self._is_limp = True
            zero = np.zeros(len(self.joint_names))
            return Command(target_pos=self._held, target_vel=zero, kp=zero, kd=zero, torque=zero)
        return self._send(self._held)

    def close(self) -> None:
        """Damp, if anything was sent, and disconnect, which switches torque off. Safe to call twice."""
        if self._scale is not None and self._has_sent:
            with contextlib.suppress(TrueupError):
                self.damp()
        self._let_go()

    # --- numbers ---
    def _velocity(self, seen: dict[str, Any], scale: AngleScale, position: FloatArray, now: float) -> FloatArray:
        """Measured velocities where the class reports them, else differences."""
        if all(f"{key}.vel" in seen for key in self._keys.values()):
            return scale.scale * self._column(seen, ".vel")
        last = self._newest
        if last is None or now <= last.time_s:
            return np.zeros(len(position))
        return (position - last.joint_pos) / (now - last.time_s)

    def _column(self, seen: Any, suffix: str) -> FloatArray:
        values = []
        for joint, key in self._keys.items():
            try:
                values.append(float(seen[key + suffix]))
            except (KeyError, TypeError, ValueError):
                raise TrueupError(f"{self._name()} reports no number {key + suffix!r}", place=joint) from None
        return np.array(values)

    def _position(self) -> FloatArray:
        """The joints as last measured."""
        connected(self._scale)
        if self._newest is None or not np.isfinite(self._newest.joint_pos).all():
            raise TrueupError("the last measured position is not finite: there is nothing to hold")
        return self._newest.joint_pos

    def _send(self, target: FloatArray) -> Command:
        scale = connected(self._scale)
        values = scale.from_rad(target).tolist()
        action = {f"{key}.pos": value for key, value in zip(self._keys.values(), values, strict=True)}
        sent = self._call("send_action", lambda: self._robot.send_action(action))
        self._has_sent = True
        if self._is_limp:
            self._call("enable_torque", self._robot.bus.enable_torque)
            self._is_limp = False
        zero = np.zeros(len(self.joint_names))
        really = scale.to_rad(self._column(sent, ".pos"))
        return Command(target_pos=really, target_vel=zero, kp=self._spec.kp, kd=self._spec.kd, torque=zero)

    # --- the robot object ---
    def _matched(self) -> dict[str, str]:
        """Key of each of our joints in LeRobot's dictionaries; one that is absent is refused by name."""
        for what in ("observation_features", "action_features"):
            features = [key for key in getattr(self._robot, what) if key.endswith(".pos")]
            keys = {joint_of(key): key.removesuffix(".pos") for key in features}
            absent = [joint for joint in self.joint_names if joint not in keys]
            if absent:
                near = did_you_mean(absent[0], keys)
                raise TrueupError(f"{self._name()} has no {', '.join(absent)} in its {what}{near}")
        return {joint: keys[joint] for joint in self.joint_names}

    def _own_ranges(self) -> dict[str, MotorRange] | None:
        """Calibrated ranges that the robot object itself has."""
        found = getattr(self._robot, "calibration", None)
        if not isinstance(found, dict) or not found:
            return None
        return {joint_of(name): MotorRange(int(item.range_min), int(item.range_max)) for name, item in found.items()}

    def _call(self, what: str, function: Callable[[], Any]) -> Any:
        """Call LeRobot's code; any exception becomes a TrueupError."""
        try:
            with self._lock:
                return function()
        except Exception as error:  # any class of anyone
            raise TrueupError(f"{self._name()} fails in {what}: {type(error).__name__}: {error}") from error

    def _name(self) -> str:
        return f"LeRobot's {type(self._robot).__name__}"

    def _let_go(self) -> None:
        self._scale = self._newest = self._held = None
        self._is_limp = self._has_sent = False
        with contextlib.suppress(Exception):  # the connection is already gone
            if self._robot.is_connected:
                self._call("disconnect", self._robot.disconnect)
