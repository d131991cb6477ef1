"""Miswired: a driver with planted mistakes of wiring and mounting, by which the wiggle test is proven and rehearsed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.hardware.driver import Command, Driver, RobotState


@dataclass(frozen=True, kw_only=True)
class Miswiring:
    """What reaches which joint, and how: reported[j] = sign[j] physical[of[j]] + offset[j], commands likewise.

    reads, writes  whether states, commands or both pass through it: a swapped plug does to both, a wrong table of names
                   in a program to one of them
    dead           joints whose motors get no command
    """

    of: Ids
    sign: FloatArray
    offset: FloatArray
    reads: bool = True
    writes: bool = True
    dead: tuple[int, ...] = ()

    @staticmethod
    def right(njoint: int) -> Miswiring:
        """Without a mistake."""
        return Miswiring(of=np.arange(njoint), sign=np.ones(njoint), offset=np.zeros(njoint))

    def swap(self, i: int, k: int) -> Miswiring:
        """With two joints exchanged."""
        of = self.of.copy()
        of[[i, k]] = of[[k, i]]
        return replace(self, of=of)

    def flip(self, j: int) -> Miswiring:
        """With one joint the other way round."""
        sign = self.sign.copy()
        sign[j] *= -1.0
        return replace(self, sign=sign)

    def shift(self, j: int, offset: float) -> Miswiring:
        """With an encoder that reads `offset` more, rad."""
        offsets = self.offset.copy()
        offsets[j] += offset
        return replace(self, offset=offsets)


class Miswired:
    """A `Driver` around another, with a `Miswiring` between the two."""

    def __init__(self, driver: Driver, wiring: Miswiring) -> None:
        self._driver, self._wiring = driver, wiring
        self.joint_names, self.realtime = driver.joint_names, driver.realtime

    def connect(self) -> None:
        """Reach the robot."""
        self._driver.connect()
        self.realtime = self._driver.realtime

    def read(self) -> RobotState:
        """The state as it comes through the wiring."""
        state, wiring = self._driver.read(), self._wiring
        if not wiring.reads:
            return state
        of, sign = wiring.of, wiring.sign
        return replace(
            state,
            joint_pos=sign * state.joint_pos[of] + wiring.offset,
            joint_vel=sign * state.joint_vel[of],
            joint_torque=sign * state.joint_torque[of],
            joint_temperature=state.joint_temperature[of],
        )

    def write(self, command: Command) -> Command:
        """Send a command through the wiring; returns what the program asked for."""
        self._driver.write(self._wired(command))
        return command

    def damp(self) -> Command:
        """Damp the joints."""
        return self._driver.damp()

    def close(self) -> None:
        """Damp and let go."""
        self._driver.close()

    def _wired(self, command: Command) -> Command:
        wiring = self._wiring
        kp, kd, torque = command.kp.copy(), command.kd.copy(), command.torque.copy()
        for gains in (kp, kd, torque):
            gains[list(wiring.dead)] = 0.0
        command = replace(command, kp=kp, kd=kd, torque=torque)
        if not wiring.writes:
            return command
        sent: dict[str, FloatArray] = {name: np.empty_like(values) for name, values in vars(command).items()}
        of, sign = wiring.of, wiring.sign
        sent["target_pos"][of] = sign * (command.target_pos - wiring.offset)
        sent["target_vel"][of], sent["torque"][of] = sign * command.target_vel, sign * command.torque
        sent["kp"][of], sent["kd"][of] = command.kp, command.kd
        return Command(**sent)
