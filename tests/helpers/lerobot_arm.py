"""An arm with the interface of LeRobot's robot classes (lerobot 0.4.4, robots/robot.py and robots/so_follower).

Method names, keys ("shoulder_pan.pos"), units (degrees, or -100..100; gripper 0..100), what `send_action` returns and
when things are refused are theirs; the servos are a list of numbers. Nothing here is LeRobot's code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

MOTORS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")


@dataclass
class ArmConfig:
    """As SOFollowerRobotConfig, without cameras."""

    port: str
    id: str | None = None
    calibration_dir: Path | None = None
    disable_torque_on_disconnect: bool = True
    max_relative_target: float | None = None
    use_degrees: bool = True


@dataclass
class MotorCalibration:
    """As LeRobot's, in encoder ticks."""

    range_min: int = 1024
    range_max: int = 3072


class Bus:
    """What of a motor bus is used."""

    def __init__(self) -> None:
        self.torque = False

    def disable_torque(self) -> None:
        self.torque = False

    def enable_torque(self) -> None:
        self.torque = True


@dataclass
class Fault:
    """What goes wrong."""

    reading: Exception | None = None
    calibrated: bool = True
    absent: str = ""


class Arm:
    """A follower arm; `position` holds LeRobot's own numbers."""

    config_class = ArmConfig
    name = "arm"
    last: ClassVar[Any] = None

    def __init__(self, config: ArmConfig) -> None:
        self.config, self.bus, self.fault = config, Bus(), Fault()
        self.calibration = {motor: MotorCalibration() for motor in MOTORS}
        self.position = dict(zip(MOTORS, (10.0, 20.0, 30.0, 40.0, 50.0, 60.0), strict=True))
        self.actions: list[dict[str, float]] = []
        self.calls: list[str] = []
        self._is_connected = False
        Arm.last = self

    @property
    def observation_features(self) -> dict[str, Any]:
        return {f"{motor}.pos": float for motor in MOTORS} | {"front": (480, 640, 3)}

    @property
    def action_features(self) -> dict[str, Any]:
        return {f"{motor}.pos": float for motor in MOTORS}

    @property
    def is_connected(self) -> bool:
        return self._is_connected

    @property
    def is_calibrated(self) -> bool:
        return self.fault.calibrated

    def connect(self, calibrate: bool = True) -> None:
        assert not calibrate, "calibration asks questions on the terminal"
        self._is_connected = self.bus.torque = True
        self.calls.append("connect")

    def get_observation(self) -> dict[str, Any]:
        self._need()
        if self.fault.reading is not None:
            raise self.fault.reading
        seen = {f"{motor}.pos": value for motor, value in self.position.items() if motor != self.fault.absent}
        return seen | {"front": object()}

    def send_action(self, action: dict[str, float]) -> dict[str, float]:
        self._need()
        most = self.config.max_relative_target
        sent = {}
        for key, goal in action.items():
            here = self.position[key.removesuffix(".pos")]
            sent[key] = goal if most is None else here + min(max(goal - here, -most), most)
        self.actions.append(sent)
        return sent

    def disconnect(self) -> None:
        self._need()
        self.calls.append("disconnect")
        self._is_connected = False
        if self.config.disable_torque_on_disconnect:
            self.bus.torque = False

    def _need(self) -> None:
        if not self._is_connected:
            raise ConnectionError("arm is not connected. Run `.connect()` first.")


@dataclass
class PlainConfig:
    """A config that says nothing of units."""

    port: str = field(default="")


class PlainArm(Arm):
    config_class = PlainConfig  # type: ignore[assignment]

    def __init__(self, config: PlainConfig) -> None:
        super().__init__(ArmConfig(port=config.port))


class SpeedArm(Arm):
    """Reports velocities too, as LeRobot's OpenArm does."""

    def get_observation(self) -> dict[str, Any]:
        return super().get_observation() | {f"{motor}.vel": 90.0 for motor in MOTORS}


class ShortArm(Arm):
    @property
    def action_features(self) -> dict[str, Any]:
        return {f"{motor}.pos": float for motor in MOTORS[:4]}


class NoRobot:
    config_class = PlainConfig

    def __init__(self, config: PlainConfig) -> None:
        self.config = config
