"""Hypotheses about parameters: what each changes, by which sizes, and how large a change must be to matter.

`tolerance` is the uncertainty of a good calibration or the wear of some days; a smaller change is never a cause.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray

Kind = Literal["add", "times", "fade", "hysteresis"]


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A change of some parameters by one size.

    kind       add: nominal + size x unit of the joint; times: nominal x size; fade: nominal x (1 - size x warmth);
               hysteresis: Dahl friction of size x unit
    of_torque  the unit of a size is the joint's torque limit
    between    shares of the highest warmth, for kind fade: motors derate from one temperature to another
    per_joint  every joint may have its own size
    axis       component of a vector parameter; of_trunk: of the trunk, or of an arm's last body
    fits       names for `calibrate --params`
    """

    cause: str
    params: tuple[str, ...]
    kind: Kind
    sizes: tuple[float, ...]
    tolerance: float
    unit: str
    of_torque: bool = False
    per_joint: bool = True
    of_trunk: bool = False
    axis: int | None = None
    between: tuple[float, float] = (0.0, 1.0)
    on_ground: bool | None = None
    fits: tuple[str, ...] = ()

    @property
    def nothing(self) -> float:
        """The size of no change."""
        return 1.0 if self.kind == "times" else 0.0

    def matters(self, size: FloatArray | float) -> NDArray[np.bool_]:
        """Whether sizes are beyond the tolerance."""
        if self.kind == "times":
            return np.asarray(np.abs(np.log(np.maximum(size, 1e-6))) > np.log1p(self.tolerance))
        return np.asarray(np.abs(np.asarray(size) - self.nothing) > self.tolerance)


_FACTORS = (0.3, 0.45, 0.6, 0.75, 0.87, 1.15, 1.35, 1.7)
_OFFSETS = (-0.3, -0.2, -0.12, -0.06, -0.03, 0.03, 0.06, 0.12, 0.2, 0.3)
_FADES = ((0.0, 0.08), (0.0, 0.3), (0.0, 1.0), (0.3, 0.8), (0.3, 1.0), (0.6, 1.0))

HYPOTHESES: tuple[Hypothesis, ...] = (
    Hypothesis(cause="delay", params=("delay",), kind="add", sizes=(-0.004, 0.004, 0.008, 0.013, 0.02, 0.03),
               tolerance=0.003, unit="s", per_joint=False, fits=("delay",)),
    Hypothesis(cause="gain", params=("kp",), kind="times", sizes=_FACTORS, tolerance=0.1, unit="times", fits=("kp",)),
    # with target speeds of zero a servo's kd and a joint's damping are one number
    Hypothesis(cause="damping", params=("kd",), kind="times", sizes=(0.2, 0.5, 2.0, 4.0), tolerance=0.5,
               unit="times kd", fits=("kd", "damping")),
    Hypothesis(cause="friction", params=("friction",), kind="add",
               sizes=(-0.02, -0.01, 0.01, 0.02, 0.04, 0.07, 0.12), tolerance=0.008, unit="of the torque limit",
               of_torque=True, fits=("friction",)),
    Hypothesis(cause="damping", params=("damping",), kind="add",
               sizes=(-0.02, -0.01, 0.01, 0.02, 0.04, 0.07, 0.12), tolerance=0.008,
               unit="s/rad of the torque limit", of_torque=True, fits=("damping",)),
    # models whose numbers are far too high: a share of them, not a difference
    Hypothesis(cause="damping", params=("damping",), kind="times", sizes=(0.05, 0.15, 0.4), tolerance=0.5,
               unit="times the damping", fits=("damping",)),
    Hypothesis(cause="friction", params=("friction",), kind="times", sizes=(0.05, 0.3), tolerance=0.5,
               unit="times the friction", fits=("friction",)),
    Hypothesis(cause="weak motors", params=("kp", "kd", "torque_limit"), kind="times",
               sizes=(0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 1.2), tolerance=0.1, unit="times", fits=("kp", "kd")),
    Hypothesis(cause="weak motors", params=("torque_limit",), kind="times", sizes=(0.05, 0.1, 0.15, 0.25, 0.4, 0.6),
               tolerance=0.1, unit="times the torque limit", fits=("torque_limit",)),
    *(Hypothesis(cause="heat", params=("torque_limit",), kind="fade", sizes=(0.5, 0.7, 0.85, 0.95),
                 tolerance=0.1, unit="of the torque limit lost when hottest", between=between, per_joint=False,
                 fits=("torque_limit",)) for between in _FADES),
    Hypothesis(cause="offset", params=("encoder_bias",), kind="add", sizes=_OFFSETS, tolerance=0.025, unit="rad",
               fits=("encoder_bias",)),
    # motors of one robot are of few types: their rotors are wrong together
    Hypothesis(cause="inertia", params=("armature",), kind="times", sizes=(0.4, 0.65, 1.5, 2.5, 4.0), tolerance=0.3,
               unit="times", per_joint=False, fits=("armature",)),
    Hypothesis(cause="hysteresis", params=(), kind="hysteresis", sizes=(0.02, 0.05, 0.1, 0.2), tolerance=0.01,
               unit="of the torque limit", of_torque=True, per_joint=False, fits=("friction",)),
    Hypothesis(cause="payload", params=("mass_scale",), kind="times", sizes=(0.7, 1.3, 1.6, 2.0, 2.5), tolerance=0.12,
               unit="times the trunk's mass", per_joint=False, of_trunk=True, fits=("mass_scale",), on_ground=True),
    *(Hypothesis(cause="payload", params=("com_offset",), kind="add", sizes=(-0.09, -0.05, 0.05, 0.09),
                 tolerance=0.02, unit=f"m along {'xyz'[axis]}", per_joint=False, of_trunk=True, axis=axis,
                 fits=("com_offset",), on_ground=True) for axis in (0, 1)),
    Hypothesis(cause="ground friction", params=("contact_friction",), kind="times",
               sizes=(0.1, 0.18, 0.3, 0.5, 1.6), tolerance=0.4, unit="times", per_joint=False,
               fits=("contact_friction",), on_ground=True),
)  # fmt: skip

# what to record to distinguish explanations that fit equally well
EXCITATION = {
    "delay": "sharp commands: steps or a chirp up to 10 Hz",
    "gain": "slow large motion with the limbs held against gravity, at two gains",
    "friction": "slow reversals with rests: triangle waves below 0.5 Hz",
    "damping": "constant speeds, slow and fast: triangle waves at several rates",
    "weak motors": "large steps that reach the torque limit, and a known load held still",
    "heat": "the same motion cold and after ten minutes of work, with temperatures in the log",
    "offset": "slow motion over the whole range, or each joint driven to its stops (`trueup wiggle`)",
    "inertia": "fast motion: a chirp up to 10 Hz with strong accelerations",
    "hysteresis": "small slow reversals about several positions, 0.02 to 0.1 rad wide",
    "payload": "squats on flat ground (`trueup record --excitation squat`)",
    "ground friction": "pushing sideways and stopping from a walk, on the same ground",
    "joint order": "each joint moved alone (`trueup wiggle`)",
    "sign": "each joint moved alone (`trueup wiggle`)",
    "wrong rate": "a log with the robot's own clock beside the computer's",
    "state estimate": "a minute of standing still, then a walk back to the start",
    "normaliser": "one reading of known values through the policy (`trueup deploy --rung replay`)",
}
