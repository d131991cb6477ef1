"""The operator's command: columns by name within the trained range, changed by keys or a gamepad."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trueup.core.errors import TrueupError, did_you_mean
from trueup.policy.bundle.passport import GoalFacts
from trueup.policy.reading import Float32

_SPEEDS = ("m/s", "rad/s")
KEY_STEP = 0.1  # step of one key press, in the column's unit; no more than a tenth of its range


class AskedGoal:
    """The operator's command (ncommand,); every value lies within `low` and `high`.

    speed   columns in m/s and rad/s go no farther than this from zero; None: the whole trained range
    """

    def __init__(self, facts: GoalFacts, speed: float | None = None) -> None:
        if speed is not None and not 0.0 <= speed < math.inf:
            raise TrueupError(f"a speed limit is 0 or more, found {speed}")
        self.columns, self.units = facts.columns, facts.units
        low, high = np.array(facts.low, np.float64), np.array(facts.high, np.float64)
        is_speed = np.array([unit in _SPEEDS for unit in facts.units], bool)
        if speed is not None:
            low, high = (np.where(is_speed, np.clip(ends, -speed, speed), ends) for ends in (low, high))
        self.low, self.high = low, high
        rest = np.where(is_speed, np.clip(0.0, low, high), 0.5 * (low + high))
        self._rest, self._values = rest, rest.copy()

    @property
    def values(self) -> Float32:
        return self._values.astype(np.float32)

    def as_dict(self) -> dict[str, float]:
        """By name."""
        return dict(zip(self.columns, self._values.tolist(), strict=True))

    def set(self, texts: Sequence[str]) -> None:
        """Parse `forward=0.3 turn=-0.2`; columns that are not named rest. Values outside the limits are refused."""
        values = self._rest.copy()
        for text in texts:
            name, equals, number = text.partition("=")
            if not equals or name not in self.columns:
                known = did_you_mean(name, self.columns)
                raise TrueupError(f"a command is NAME=NUMBER, found {text!r}{known}", place="--command")
            values[self.columns.index(name)] = self._number(name, number)
        self._values = values

    def rest(self) -> None:
        """Command standing still: zero speeds, the middle of every other column's range."""
        self._values = self._rest.copy()

    def nudge(self, name: str, sign: int) -> None:
        """One press of a key: a step of a column that the policy has, within the limits."""
        if name in self.columns:
            k = self.columns.index(name)
            step = min(KEY_STEP, 0.1 * float(self.high[k] - self.low[k]) or KEY_STEP)
            wanted = round(self._values[k] + sign * step, 6)
            self._values[k] = float(np.clip(wanted, self.low[k], self.high[k]))

    def steer(self, name: str, share: float) -> None:
        """Set a column from a stick: -1 to 1 of its limits; the middle means rest."""
        if name in self.columns and math.isfinite(share):
            k = self.columns.index(name)
            share = min(max(share, -1.0), 1.0)
            end = self.high[k] if share > 0.0 else self.low[k]
            self._values[k] = self._rest[k] + abs(share) * (end - self._rest[k])

    def _number(self, name: str, text: str) -> float:
        k = self.columns.index(name)
        try:
            value = float(text)
        except ValueError:
            raise TrueupError(f"{name} takes a number, found {text!r}", place="--command") from None
        if not self.low[k] - 1e-9 <= value <= self.high[k] + 1e-9:
            raise TrueupError(
                f"{name}={text} is outside {self.low[k]:g} to {self.high[k]:g} {self.units[k]}, the limits of this run "
                "(trained range and --speed)",
                place="--command",
            )
        return value
