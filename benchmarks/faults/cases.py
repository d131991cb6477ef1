"""The faults of the matrix: what is done, whether it can be seen, and what must come of it."""

from __future__ import annotations

import signal
from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np

from faults.frames import (
    Channel,
    ClockBack,
    Commander,
    FlippedNumbers,
    FrameFault,
    Frozen,
    Replay,
    States,
    Voltage,
)
from faults.processes import ROBOT, Act, fill_disk, second_driver, send_signal
from faults.relay import MakeFault
from faults.spoil import Draw, Random, flip_sign, offset, set_imu, set_joint, spike_velocity, swap, turn_imu
from trueup.robot.load import load_robot

Expect = Literal["tolerate", "stop", "later", "either", "robot"]
"""What must come of a fault.

tolerate  nothing: a trip would be a false one
stop      damping at the motors within two control periods: it is visible at once, or as silence
later     damping, but only time shows it (a sensor that stands still, a schedule that is not kept)
either    nothing that shows it for sure: whatever comes of it, no bad command
robot     nothing of ours can reach the motors any more: their own watchdog
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One fault.

    frames   makes the fault of the relay; `act` is done to processes: (pid of policy, pid of guard, robot's port)
    output   of the policy
    note     what the page says beside it
    guard    it is a fault of the guard: a loop without one does not have it
    """

    name: str
    expect: Expect
    frames: MakeFault | None = None
    act: Act | None = None
    output: str = ""
    note: str = ""
    guard: bool = False


def _channel(name: str, expect: Expect, note: str = "", **shares: float | str) -> Case:
    def make(random: Random, memory: deque[bytes]) -> FrameFault:
        return Channel(random, **shares)  # type: ignore[arg-type]

    return Case(name=name, expect=expect, frames=make, note=note)


def _replay(name: str, expect: Expect, how: str, note: str = "") -> Case:
    return Case(name=name, expect=expect, frames=lambda random, memory: Replay(how, memory), note=note)


def _states(name: str, expect: Expect, draw: Draw, share: float = 1.0, note: str = "") -> Case:
    """`draw` chooses joint and values of a run and returns what changes the numbers."""

    def make(random: Random, memory: deque[bytes]) -> FrameFault:
        return States(random, draw(random), share)

    return Case(name=name, expect=expect, frames=make, note=note)


def _flipped(name: str, expect: Expect, share: float) -> Case:
    note = "most bits are too small to be seen"
    return Case(name=name, expect=expect, frames=lambda random, memory: FlippedNumbers(random, share), note=note)


def _frozen(name: str, *, one: bool) -> Case:
    def make(random: Random, memory: deque[bytes]) -> FrameFault:
        return Frozen(int(random.integers(12)) if one else None)

    return Case(name=name, expect="later", frames=make)


def _commander(random: Random, memory: deque[bytes]) -> FrameFault:
    spec = load_robot(ROBOT).spec
    return Commander(spec.default_pose, spec.kp, spec.kd)


def _policy(name: str, expect: Expect, output: str, note: str = "") -> Case:
    return Case(name=name, expect=expect, output=output, note=note)


def _act(name: str, expect: Expect, act: Act, note: str = "") -> Case:
    return Case(name=name, expect=expect, act=act, note=note)


CASES: tuple[Case, ...] = (
    _channel("drop 1 %", "tolerate", drop=0.01),
    _channel("drop 10 %", "tolerate", drop=0.1),
    _channel("drop 50 %", "tolerate", drop=0.5),
    _channel("drop 100 % of states", "stop", ways="up", drop=1.0),
    _channel("drop 100 % both ways", "robot", drop=1.0),
    _channel("delay 5 ms both ways", "tolerate", delay_s=0.005),
    _channel("delay 20 ms of states", "either", "less than what is stale", ways="up", delay_s=0.02),
    _channel("delay 50 ms of states", "stop", ways="up", delay_s=0.05),
    _channel("delay 100 ms of states", "stop", ways="up", delay_s=0.1),
    _channel("delay 200 ms of states", "stop", ways="up", delay_s=0.2),
    _channel("delay 200 ms both ways", "robot", "damping is late as well", delay_s=0.2),
    _channel("duplicate 50 %", "tolerate", duplicate=0.5),
    _channel("reorder 30 %", "tolerate", reorder=0.3),
    _channel("truncate 10 %", "tolerate", truncate=0.1),
    _channel("truncate all states", "stop", ways="up", truncate=1.0),
    _channel("bit flips, wrong CRC, 10 %", "tolerate", flip=0.1),
    _channel("bit flips, wrong CRC, all states", "stop", ways="up", flip=1.0),
    _flipped("bit flips, right CRC, 1 % of states", "either", 0.01),
    _flipped("bit flips, right CRC, all states", "later", 1.0),
    _replay("old states beside the new", "tolerate", "beside"),
    _replay("old states instead of new", "stop", "instead"),
    _replay("old states, renumbered", "either", "dressed", "seen where old and new do not fit"),
    Case(name="clock of the robot goes back", expect="stop", frames=lambda random, memory: ClockBack()),
    _frozen("all sensors frozen", one=False),
    _frozen("one joint frozen", one=True),
    _states("position NaN", "stop", set_joint(0, np.nan)),
    _states("position 1e30", "stop", set_joint(0, 1e30)),
    _states("velocity NaN", "stop", set_joint(1, np.nan)),
    _states("gyro NaN", "stop", set_imu(4, 3, np.nan)),
    _states("spikes of 1 rad, 2 % of states", "tolerate", offset(1.0, alternate=True), 0.02),
    _states("spikes of 1 rad, all states", "stop", offset(1.0, alternate=True)),
    _states("spikes of 60 rad/s, 2 % of states", "tolerate", spike_velocity, 0.02),
    _states("encoder offset 0.5 rad", "stop", offset(0.5)),
    _states("encoder offset 0.05 rad", "either", offset(0.05), note="no jump, no limit shows it"),
    _states("sign of thigh or calf flipped", "stop", flip_sign((1, 2))),
    _states("sign of a hip flipped", "either", flip_sign((0,)), note="a hip near zero does not jump"),
    _states("thigh and calf swapped", "stop", swap(same_leg=True)),
    _states("thighs of two legs swapped", "either", swap(same_leg=False), note="they read nearly the same"),
    _states("IMU rotated 90 deg", "stop", turn_imu(90.0)),
    _states("IMU rotated 10 deg", "stop", turn_imu(10.0)),
    _states("IMU rotated 4 deg", "either", turn_imu(4.0), note="less than a jump"),
    _states("quaternion zero", "stop", set_imu(0, 4, 0.0)),
    _states("motor at 95 deg C", "stop", set_joint(3, 95.0)),
    _states("motor at 75 deg C", "tolerate", set_joint(3, 75.0), note="derated"),
    Case(name="battery at 20 V", expect="stop", frames=lambda random, memory: Voltage(20.0)),
    _policy("policy NaN", "stop", "nan"),
    _policy("policy huge (1e6)", "stop", "huge"),
    _policy("policy slow (30 ms a step)", "later", "slow", "five steps in a row"),
    _policy("policy hung", "stop", "hung"),
    _policy("policy raises", "stop", "crash"),
    _policy("policy aborts", "stop", "abort"),
    _act("policy SIGKILL", "stop", send_signal(signal.SIGKILL)),
    _act("policy SIGSTOP", "stop", send_signal(signal.SIGSTOP)),
    _act("policy SIGINT", "stop", send_signal(signal.SIGINT)),
    _act("policy SIGTERM", "stop", send_signal(signal.SIGTERM)),
    Case(name="guard SIGKILL", expect="robot", act=send_signal(signal.SIGKILL, guard=True), guard=True),
    Case(name="guard SIGSTOP", expect="robot", act=send_signal(signal.SIGSTOP, guard=True), guard=True),
    _act("disk full", "tolerate", fill_disk, "recording ends, control goes on"),
    _act("second driver", "tolerate", second_driver, "the robot refuses it"),
    Case(
        name="second commander on our line",
        expect="either",
        frames=_commander,
        note="found, and ours stops; theirs go on, within limits",
    ),
)
