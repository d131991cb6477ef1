"""Searches the size of each hypothesis on one half of the windows and scores it on the other.

Joints move nearly independently over short windows, so one batch in which a size is given to all joints also shows
which size fits each joint best. Three variants are then simulated as such: one size for all, each joint its own, and
the one joint that gains most; the estimating half also chooses the variant, with a penalty for every further number.
On the other half only these variants are simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trueup.core.arrays import FloatArray, Mask
from trueup.gap.causes.hypotheses import Hypothesis
from trueup.gap.mismatch import Model, Values, base_values, losses
from trueup.gap.windows import LogWindows, some
from trueup.robot.model import trunk_body

_PRICE = 0.01  # of the mismatch that a further number must explain on the half that it was estimated on
_COARSE_RAD, _TOGETHER = 0.05, 4  # offsets on the ground: sizes to try, largest number of joints together
_NO_CHANGE = 1e-6  # of a window's mismatch
_GAINS = 0.03  # of a joint's own mismatch that its size must explain


@dataclass(frozen=True, kw_only=True)
class Tested:
    """A hypothesis with its size: mismatch (W,) in every window, without and with the change."""

    cause: str
    joints: tuple[str, ...]
    size: float
    unit: str
    before: FloatArray
    after: FloatArray
    matters: bool
    evidence: str = ""
    fits: tuple[str, ...] = ()
    numbers: int = 1
    values: Values = field(default_factory=dict)

    def explained(self, windows: Mask) -> float:
        """Share of the mismatch of some windows that disappears."""
        before = float(self.before[windows].sum())
        return 1.0 - float(self.after[windows].sum()) / before if before > 0.0 else 0.0

    @property
    def acts(self) -> Mask:
        """Windows (W,) in which the change has an effect: a torque limit that is not reached has none."""
        return np.asarray(np.abs(self.after - self.before) > _NO_CHANGE * np.maximum(self.before, 1e-12))


class CauseSearch:
    """Tests hypotheses on windows of one log against one model; `given` are values already set."""

    def __init__(self, model: Model, windows: LogWindows, given: Values | None = None) -> None:
        self.model, self.windows, self.given = model, windows, dict(given or {})
        self.njoint = model.robot.spec.njoint
        self.before = losses(model, windows, [self.given])[0]
        self._fit, self._judged = np.flatnonzero(~windows.held), np.flatnonzero(windows.held)
        self._half = {half: some(windows, rows) for half, rows in ((False, self._fit), (True, self._judged))}

    def test(self, one: Hypothesis) -> Tested:
        """Find the size and compare with the model as it is."""
        base = {**base_values(self.model, self.windows, one.params), **self.given}
        base = {name: base[name] for name in one.params}
        if one.cause == "offset" and self.model.walking:
            return self._best_of(one, base, *self._one_by_one(one, base))
        tried = self._estimate(one, base, [np.full(self.njoint, size) for size in one.sizes])
        every = np.concatenate([self.before[None, self._fit], tried])
        sizes = np.array([one.nothing, *one.sizes])
        variants = [self._refined(sizes, every.sum(axis=(1, 2)))]
        price = [1]
        vectors = [np.full(self.njoint, variants[0])]
        if one.per_joint:
            own = self._own_sizes(one, sizes, every)
            gain = self._gain(every)
            alone = np.full(self.njoint, one.nothing)
            alone[gain.argmax()] = self._refined(sizes, every[:, :, gain.argmax()].sum(axis=1))
            vectors += [own, alone]
            price += [max(1, len(set(np.round(own[own != one.nothing], 6).tolist()))), 1]
        return self._best_of(one, base, vectors, price)

    def _best_of(self, one: Hypothesis, base: Values, vectors: list[FloatArray], price: list[int]) -> Tested:
        """The best variant on the estimating half, with a penalty on each number."""
        fit = self._estimate(one, base, vectors)
        whole = max(float(self.before[self._fit].sum()), 1e-12)  # windows in which nothing moves have no mismatch
        best = int(np.argmin([each.sum() / whole + _PRICE * number for each, number in zip(fit, price, strict=True)]))
        after = np.empty_like(self.before)
        after[self._fit], after[self._judged] = fit[best], self._estimate(one, base, [vectors[best]], held=True)[0]
        return replace(self._tested(one, base, vectors[best], after), numbers=price[best])

    def _one_by_one(self, one: Hypothesis, base: Values) -> tuple[list[FloatArray], list[int]]:
        """On the ground one joint's offset moves all others: each is tried alone, then the best ones together."""
        sizes = np.array([size for size in one.sizes if abs(size) > _COARSE_RAD])
        vectors = [size * row for row in np.eye(self.njoint) for size in sizes]
        tried = self._estimate(one, base, vectors).sum(axis=(1, 2)).reshape(self.njoint, len(sizes))
        nothing = float(self.before[self._fit].sum())
        gain = nothing - tried.min(axis=1)
        with_none = np.append(sizes, 0.0)
        best = [self._refined(with_none, np.append(row, nothing)) for row in tried]
        order = np.argsort(-gain)[:_TOGETHER]
        joined = [np.where(np.isin(np.arange(self.njoint), order[: k + 1]), best, 0.0) for k in range(len(order))]
        return joined, list(range(1, len(order) + 1))

    def _tested(self, one: Hypothesis, base: Values, vector: FloatArray, after: FloatArray) -> Tested:
        names = self.model.robot.spec.joint_names
        moved = one.matters(vector) if one.per_joint else np.ones(self.njoint, np.bool_)
        joints = tuple(n for n, is_moved in zip(names, moved, strict=True) if is_moved)
        size = float(np.median(vector[moved])) if moved.any() else one.nothing
        return Tested(
            cause=one.cause,
            joints=() if len(joints) == len(names) else joints,
            size=size,
            unit=one.unit,
            before=self.before.sum(axis=1),
            after=after.sum(axis=1),
            matters=bool(moved.any() and np.any(one.matters(vector[moved]))),
            fits=one.fits,
            values={} if one.kind == "hysteresis" else self._values(one, base, vector),
        )

    def _own_sizes(self, one: Hypothesis, sizes: FloatArray, every: FloatArray) -> FloatArray:
        """Each joint's best size by its own mismatch; nothing where it gains little or does not matter."""
        own = np.array([self._refined(sizes, every[:, :, j].sum(axis=1)) for j in range(self.njoint)])
        small = self._gain(every) < _GAINS * every[0].sum(axis=0)[: self.njoint]
        return np.where(small | ~one.matters(own), one.nothing, own)

    def _gain(self, every: FloatArray) -> FloatArray:
        total = every.sum(axis=1)[:, : self.njoint]
        gain: FloatArray = total[0] - total.min(axis=0)
        return gain

    @staticmethod
    def _refined(sizes: FloatArray, cost: FloatArray) -> float:
        """The minimum of a parabola through the best size and its neighbours."""
        order = np.argsort(sizes)
        s, c = sizes[order], cost[order]
        k = int(c.argmin())
        if k in (0, len(s) - 1):
            return float(s[k])
        a, b, _ = np.polyfit(s[k - 1 : k + 2], c[k - 1 : k + 2], 2)
        return float(np.clip(-b / (2.0 * a), s[k - 1], s[k + 1])) if a > 0.0 else float(s[k])

    def _estimate(self, one: Hypothesis, base: Values, vectors: Sequence[FloatArray], held: bool = False) -> FloatArray:
        """Mismatch (vector, w, channel) in the windows that estimate, or in those that judge."""
        values, friction = self._candidates(one, base, vectors)
        rows = self._judged if held else self._fit
        own = [{name: each[rows] for name, each in given.items()} for given in values]
        return losses(self.model, self._half[held], own, friction)

    def _candidates(
        self, one: Hypothesis, base: Values, vectors: Sequence[FloatArray]
    ) -> tuple[list[Values], list[FloatArray] | None]:
        """Values of parameters for each vector; of hysteresis, its torques."""
        if one.kind == "hysteresis":
            return [self.given] * len(vectors), [v * self.model.robot.spec.torque_limit for v in vectors]
        return [self._values(one, base, vector) for vector in vectors], None

    def _values(self, one: Hypothesis, base: Values, vector: FloatArray) -> dict[str, FloatArray]:
        """Absolute values (W, ...) of the parameters, with those already set."""
        return self.given | {name: self._changed(one, name, base[name], vector) for name in one.params}

    def _changed(self, one: Hypothesis, name: str, base: FloatArray, vector: FloatArray) -> FloatArray:
        spec = self.model.robot.spec
        if one.of_trunk:
            return self._of_trunk(one, name, base, float(vector[0]))
        size = vector if base.ndim > 1 else vector[0]
        if one.kind == "times":
            return base * size
        if one.kind == "fade":
            low, high = one.between
            return base * (1.0 - vector * np.clip((self.windows.warm - low) / (high - low), 0.0, 1.0))
        changed = base + (size * spec.torque_limit if one.of_torque else size)
        return changed if name == "encoder_bias" else np.maximum(changed, 0.0)

    def _of_trunk(self, one: Hypothesis, name: str, base: FloatArray, size: float) -> FloatArray:
        sim = self.model.sim(self.windows.count, self.windows.rate_hz, self.windows, 1)
        column = sim.params.body_names.index(trunk_body(sim.model, self.model.robot))
        out = base.copy()
        if one.kind == "times":
            out[:, column] *= size
        else:
            out[:, column, one.axis] += size
        return out
