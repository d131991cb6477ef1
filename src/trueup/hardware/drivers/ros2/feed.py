"""State feed: JointState and Imu topics as one stream of RobotState."""

from __future__ import annotations

import time

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import RobotState
from trueup.hardware.drivers.ros2 import messages
from trueup.hardware.drivers.ros2.bus import RosBus
from trueup.hardware.drivers.ros2.options import Ros2Cfg, topic_on_wire
from trueup.hardware.drivers.ros2.states import Inertial, Joints, StateReader, read_imu

FIRST_S = 1.0  # at least, for DDS to bring a writer and a reader together
IMU_SHARE = 0.1  # of the time-out: how long the IMU may be silent


class Feed:
    """Takes in states; `sequence` counts them."""

    def __init__(self, bus: RosBus, joint_names: tuple[str, ...], cfg: Ros2Cfg) -> None:
        self._bus, self._cfg = bus, cfg
        self._reader = StateReader(joint_names, cfg)
        self._states = bus.inbox(cfg.state, messages.JointState)
        self._imus = bus.inbox(cfg.imu, messages.Imu) if cfg.imu else None
        self._newest: Joints | None = None
        self._inertial: tuple[float, Inertial] | None = None  # arrival time and content
        self._returned = 0
        self.sequence = 0

    def await_first(self) -> None:
        """Wait for the first messages of joints and IMU."""
        deadline = time.monotonic() + max(self._cfg.timeout_s, FIRST_S)
        while self._newest is None or (self._imus is not None and self._inertial is None):
            if time.monotonic() > deadline:
                silent = self._cfg.state if self._newest is None else self._cfg.imu
                raise TrueupError(f"nothing comes on {silent}; {self._heard(silent)}")
            self._states.wait(0.02)
            self._take_in()

    def next(self) -> RobotState:
        """The newest state; waits for one if none has come since the last call."""
        deadline = time.monotonic() + self._cfg.timeout_s
        self._take_in()
        while self.sequence == self._returned:
            left = deadline - time.monotonic()
            if left <= 0.0:
                silent = self._cfg.state
                raise TrueupError(f"no state on {silent} for {self._cfg.timeout_s:g} s; {self._heard(silent)}")
            self._states.wait(left)
            self._take_in()
        self._returned = self.sequence
        return self._state()

    def position(self) -> FloatArray:
        """The joints as last measured."""
        self._take_in()
        assert self._newest is not None  # `await_first` has waited for one
        if not np.isfinite(self._newest.position).all():
            raise TrueupError("the last measured position is not finite: there is nothing to hold")
        return self._newest.position

    def _take_in(self) -> None:
        """Receive waiting messages: the newest is used, all are counted."""
        now = time.monotonic()
        self._take_imu()
        for message in self._states.take():
            state = self._reader.read(message, now)
            if state is not None:
                self._newest = state
                self.sequence += 1

    def _take_imu(self) -> None:
        if self._imus is not None and (imus := self._imus.take()):
            self._inertial = time.monotonic(), read_imu(imus[-1])

    def _fresh_imu(self) -> Inertial:
        """The newest IMU message; waits briefly for a fresh one, since after a pause joints arrive first."""
        if self._imus is None or self._inertial is None:
            return Inertial(None, None, None)
        limit = IMU_SHARE * self._cfg.timeout_s
        if time.monotonic() - self._inertial[0] > limit:
            self._imus.wait(limit)
            self._take_imu()
        if (age := time.monotonic() - self._inertial[0]) > limit:
            raise TrueupError(f"the IMU on {self._cfg.imu} has been silent for {age:.2f} s while the joints report")
        return self._inertial[1]

    def _state(self) -> RobotState:
        assert self._newest is not None
        time_s, position, velocity, effort = self._newest
        quat, gyro, acc = self._fresh_imu()
        return RobotState(
            sequence=self.sequence,
            time_s=time_s,
            joint_pos=position,
            joint_vel=velocity,
            joint_torque=effort,
            joint_temperature=np.full(len(position), np.nan),
            voltage=float("nan"),
            imu_quat=quat,
            imu_gyro=gyro,
            imu_acc=acc,
        )

    def _heard(self, silent: str) -> str:
        """Topics that are received instead, for an error message."""
        topics = self._bus.topics()
        found = topics.get(topic_on_wire(silent))
        if found is not None:
            return f"it is published as {found}: the publisher is silent, or sends another type"
        ours = sorted(name.removeprefix("rt") for name in topics if name.startswith("rt/"))
        seen = f"topics here: {', '.join(ours[:12])}" if ours else "no ROS topic is published here"
        return f"{seen} ({self._bus.place}); check the domain (ROS_DOMAIN_ID), the interface and the topic's name"
