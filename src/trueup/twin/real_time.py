"""A twin served in real time: command periods on an absolute schedule, the tap at its motors, faults of its packets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.hardware.twin_cfg import FaultCfg, ServeCfg
from trueup.twin.firmware import Twin
from trueup.twin.tap import TapFile

SLIP_S = 0.5  # behind the wall clock by more than this: the schedule starts anew


def periods(twin: Twin, hz: float, is_over: Callable[[], bool]) -> Iterator[tuple[float, float]]:
    """Yield (begins, is due) of each command period, s of `time.perf_counter`, until it is over.

    The caller waits until it is due and lets the twin pass the period; one that took longer counts as an overrun.
    """
    period, start, k = 1.0 / hz, time.perf_counter(), 0
    while not is_over():
        k += 1
        due = start + k * period
        yield due - period, due
        late = time.perf_counter() - due
        if late > period:
            twin.count("overruns")
        if late > SLIP_S:
            start += late


class PacketFaults:
    """One direction of a bad network: packets dropped, doubled, swapped or damaged, by a seeded coin."""

    def __init__(self, cfg: FaultCfg, random: np.random.Generator) -> None:
        self._cfg, self._random = cfg, random
        self._held: bytes | None = None

    def __call__(self, packet: bytes) -> list[bytes]:
        """Return the packets that arrive now that `packet` is sent."""
        drop, double, swap, damage = self._random.random(4)
        arrived: list[bytes] = []
        if drop >= self._cfg.drop:
            packet = self._damaged(packet) if damage < self._cfg.corrupt else packet
            arrived = [packet, packet] if double < self._cfg.duplicate else [packet]
        if arrived and self._held is None and swap < self._cfg.reorder:
            self._held = arrived.pop()
        elif self._held is not None:
            arrived.append(self._held)
            self._held = None
        return arrived

    def _damaged(self, packet: bytes) -> bytes:
        bits = bytearray(packet)
        for _ in range(int(self._random.integers(1, 5))):
            bits[int(self._random.integers(len(bits)))] ^= 1 << int(self._random.integers(8))
        return bytes(bits)


class ServedTwin:
    """Base of all servers of a twin: a server receives commands in `_listen_until` and reports in `_report`.

    reference  what a user types after --driver
    """

    reference: str

    def __init__(self, twin: Twin, cfg: ServeCfg) -> None:
        self.twin, self._cfg = twin, cfg
        streams = (np.random.default_rng([cfg.seed % 2**64, stream]) for stream in (3, 4))
        self._way_in, self._way_out = (PacketFaults(cfg.faults, random) for random in streams)
        self._tap = TapFile(cfg.tap, twin.robot.spec.joint_names) if cfg.tap else None
        self._is_over = False

    def run(self) -> None:
        """Serve in real time until the process is stopped or another thread calls `stop`."""
        for began, due in periods(self.twin, self._cfg.command_hz, lambda: self._is_over):
            self._listen_until(due, began)
            self._pass_period()
            self._report()

    def stop(self) -> None:
        """Let `run` return after this period."""
        self._is_over = True

    def close(self) -> None:
        """Close sockets and files. Safe to call twice."""
        if self._tap is not None:
            self._tap.close()

    def _listen_until(self, due: float, began: float) -> None:
        """Receive commands until the period ends; each takes effect at its arrival within the period."""
        raise NotImplementedError

    def _report(self) -> None:
        """Send the state after a period."""

    def _pass_period(self) -> None:
        self.twin.period()
        if self._tap is not None:
            self._tap.period(self.twin.time_s, self.twin.plant.force)

    def _steps_since(self, began: float) -> float:
        """Physics steps since a period began, within the period."""
        steps = (time.perf_counter() - began) * self.twin.physics_hz
        return min(max(steps, 0.0), float(self.twin.substeps))

    def _give(self, rows: FloatArray, ahead: float) -> None:
        """Give the twin a command (5, njoint) that arrives `ahead` physics steps from now."""
        if self._tap is not None:
            self._tap.command(rows)
        self.twin.command(rows, ahead)

    def _arrived(self, packet: bytes) -> list[bytes]:
        return self._way_in(packet) if self._cfg.faults.any else [packet]

    def _sent(self, packet: bytes) -> list[bytes]:
        return self._way_out(packet) if self._cfg.faults.any else [packet]
