"""Twins in another process, over the real socket, in lock-step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.hardware.driver import Command
from trueup.hardware.drivers.twin import TwinDriver
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import Robot, load_robot

FloatArray = NDArray[np.float64]
Plan = Callable[[float], dict[str, float | FloatArray]]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a driver saw: row 0 is the state before the first command, row k after the k-th."""

    time: FloatArray
    pos: FloatArray
    vel: FloatArray
    torque: FloatArray
    temperature: FloatArray
    voltage: FloatArray
    gyro: FloatArray | None
    acc: FloatArray | None


def command(robot: Robot, **values: float | FloatArray) -> Command:
    """A command with zeros for what is not given."""
    n = robot.spec.njoint
    names = ("target_pos", "target_vel", "kp", "kd", "torque")
    return Command(**{name: np.broadcast_to(values.get(name, 0.0), n).astype(float) for name in names})


def drive(driver: TwinDriver, robot: Robot, plan: Plan, seconds: float) -> Run:
    """Run a plan (robot time -> parts of a command) and collect the states."""
    states = [driver.read()]
    for _ in range(round(seconds * driver.command_hz)):
        driver.write(command(robot, **plan(states[-1].time_s)))
        states.append(driver.read())
    has_imu = states[0].imu_gyro is not None
    return Run(
        time=np.array([state.time_s for state in states]),
        pos=np.array([state.joint_pos for state in states]),
        vel=np.array([state.joint_vel for state in states]),
        torque=np.array([state.joint_torque for state in states]),
        temperature=np.array([state.joint_temperature for state in states]),
        voltage=np.array([state.voltage for state in states]),
        gyro=np.array([state.imu_gyro for state in states]) if has_imu else None,
        acc=np.array([state.imu_acc for state in states]) if has_imu else None,
    )


class Twins:
    """Starts twins and runs plans on them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._open: list[TwinDriver] = []

    def start(self, preset: str, robot: str = "pendulum", **options: object) -> TwinDriver:
        """A connected lock-step twin; `preset` is a name or TOML without its schema line."""
        if "[" in preset or not preset:
            self._count += 1
            file = self._folder / f"preset{self._count}.toml"
            file.write_text(f"schema = 1\n{preset}\n")
            preset = str(file)
        arguments: dict[str, object] = {"preset": preset, "lockstep": True, **options}
        driver = TwinDriver(load_robot(robot), ServeCfg(**arguments), timeout_s=20.0)  # type: ignore[arg-type]
        driver.connect()
        self._open.append(driver)
        return driver

    def run(self, preset: str, plan: Plan, seconds: float, robot: str = "pendulum", **options: object) -> Run:
        """Run a plan on a fresh twin."""
        driver = self.start(preset, robot, **options)
        result = drive(driver, load_robot(robot), plan, seconds)
        driver.close()
        return result

    def close(self) -> None:
        for driver in self._open:
            driver.close()
