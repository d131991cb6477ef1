"""Messages between a run and its live pages: MessagePack of the structs below, one a datagram, on 127.0.0.1.

A page sends a `Request`; a run answers with the robot's description (`About`), its state (`News`), whether a code was
right (`CodeAnswer`), and that it is over (`Goodbye`). Any bytes become one of them or a msgspec error.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from trueup.hardware.driver import Command, RobotState
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec

SHORTEST_TOKEN = 8
MAX_REQUEST_BYTES = 256
MAX_TEXT = 400  # characters of one flag or reason
MAX_FLAGS = 32
Does = Literal["subscribe", "check", "stop"]


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page's request: subscribe, verify a token, or stop the robot. The answer repeats `number`."""

    does: Does
    number: int = 0
    code: bytes = b""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    run: str


class About(_Message, frozen=True, kw_only=True):
    """The robot of the run: everything that a page needs to build its model."""

    spec: RobotSpec
    model_path: str
    built_in: bool
    options: dict[str, float]

    @staticmethod
    def of(run: str, robot: Robot) -> About:
        model = str(robot.model_path.resolve())
        return About(run=run, spec=robot.spec, model_path=model, built_in=robot.built_in, options=robot.options)


class News(_Message, frozen=True, kw_only=True):
    """State of the run: sensors, sent command, operator's command, margins of the guards."""

    sequence: int
    time_s: float
    joint_pos: list[float]
    joint_vel: list[float]
    joint_torque: list[float]
    joint_temperature: list[float]
    voltage: float
    imu_quat: list[float] | None
    target_pos: list[float] | None
    asked: dict[str, float]
    margins: dict[str, float]
    flags: list[str]
    trip: str
    stop_requested: bool

    @staticmethod
    def of(
        run: str,
        sequence: int,
        time_s: float,
        state: RobotState,
        command: Command | None,
        asked: Mapping[str, float],
        margins: Mapping[str, float],
        flags: Sequence[str],
        trip: str,
        stop_requested: bool,
    ) -> News:
        return News(
            run=run,
            sequence=sequence,
            time_s=float(time_s),
            joint_pos=state.joint_pos.tolist(),
            joint_vel=state.joint_vel.tolist(),
            joint_torque=state.joint_torque.tolist(),
            joint_temperature=state.joint_temperature.tolist(),
            voltage=float(state.voltage),
            imu_quat=None if state.imu_quat is None else state.imu_quat.tolist(),
            target_pos=None if command is None else command.target_pos.tolist(),
            asked={name: float(value) for name, value in asked.items()},
            margins={name: float(value) for name, value in margins.items()},
            flags=[str(flag)[:MAX_TEXT] for flag in flags[:MAX_FLAGS]],
            trip=trip[:MAX_TEXT],
            stop_requested=stop_requested,
        )


class CodeAnswer(_Message, frozen=True, kw_only=True):
    """Whether the code of a request was right."""

    does: Does
    number: int
    granted: bool


class Goodbye(_Message, frozen=True, kw_only=True):
    """The run is over."""


Message = About | News | CodeAnswer | Goodbye


def code(token: str, run: str, does: str) -> bytes:
    """Proof of knowing the token: HMAC-SHA-256 of the run's name and the request."""
    return hmac.new(token.encode(), f"{run} {does}".encode(), hashlib.sha256).digest()
