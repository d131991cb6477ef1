"""A bad network on request: packets dropped, doubled, swapped or damaged, by a seeded coin."""

from __future__ import annotations

import numpy as np

from trueup.hardware.twin_cfg import FaultCfg


class PacketFaults:
    """One direction of a bad network."""

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
