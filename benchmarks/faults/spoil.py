"""Wrong readings: each function draws joint and values of a run, and returns what changes the numbers of a report.

Numbers are position, velocity, torque and temperature of the joints, then quaternion, gyro and accelerometer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from faults.frames import quaternion_about, rotated
from trueup.core.arrays import FloatArray

Random = np.random.Generator
Change = Callable[[FloatArray, int], None]
Draw = Callable[[Random], Change]
LEG = 3  # joints of a leg: hip, thigh, calf


def set_joint(row: int, value: float) -> Draw:
    """One joint reports this; rows: position, velocity, torque, temperature."""

    def draw(random: Random) -> Change:
        joint = int(random.integers(12))

        def change(numbers: FloatArray, njoint: int) -> None:
            numbers[row * njoint + joint] = value

        return change

    return draw


def offset(rad: float, *, alternate: bool = False) -> Draw:
    def draw(random: Random) -> Change:
        joint, sign = int(random.integers(12)), float(random.choice((-1.0, 1.0)))

        def change(numbers: FloatArray, njoint: int) -> None:
            numbers[joint] += sign * rad * (float(random.choice((-1.0, 1.0))) if alternate else 1.0)

        return change

    return draw


def spike_velocity(random: Random) -> Change:
    joint = int(random.integers(12))

    def change(numbers: FloatArray, njoint: int) -> None:
        numbers[njoint + joint] += 60.0

    return change


def flip_sign(joints: tuple[int, ...]) -> Draw:
    """Of the leg's joints: 0 hip, 1 thigh, 2 calf."""

    def draw(random: Random) -> Change:
        joint = LEG * int(random.integers(4)) + int(random.choice(joints))

        def change(numbers: FloatArray, njoint: int) -> None:
            numbers[[joint, njoint + joint, 2 * njoint + joint]] *= -1.0

        return change

    return draw


def swap(*, same_leg: bool) -> Draw:
    def draw(random: Random) -> Change:
        if same_leg:
            first, second = LEG * int(random.integers(4)) + np.array([1, 2])
        else:
            first, second = LEG * random.choice(4, 2, replace=False) + 1

        def change(numbers: FloatArray, njoint: int) -> None:
            for row in range(4):
                a, b = row * njoint + first, row * njoint + second
                numbers[[a, b]] = numbers[[b, a]]

        return change

    return draw


def turn_imu(degrees: float, axes: tuple[int, ...] = (0, 1)) -> Draw:
    def draw(random: Random) -> Change:
        by = quaternion_about(int(random.choice(axes)), degrees * float(random.choice((-1.0, 1.0))))

        def change(numbers: FloatArray, njoint: int) -> None:
            imu = numbers[4 * njoint :]
            imu[:4] = rotated(imu[:4], by)

        return change

    return draw


def set_imu(start: int, count: int, value: float) -> Draw:
    def draw(random: Random) -> Change:
        def change(numbers: FloatArray, njoint: int) -> None:
            numbers[4 * njoint + start : 4 * njoint + start + count] = value

        return change

    return draw
