"""Excitation: from a spec and a config to a plan that excites the joints' dynamics. Deterministic for a seed.

Every plan starts and ends at rest at the spec's excitation pose (the default, unless `excited_at` says otherwise) and
stays inside the parts of the position and velocity limits that `LimitCfg` grants. Torque and self-collision need a
model: see `world.rehearse`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.rows import RowRandom
from trueup.robot.excitation.limits import Bounds, LimitCfg, fit_into, joint_bounds
from trueup.robot.excitation.plan import Plan, clock, min_jerk
from trueup.robot.excitation.waves import WAVES, Kind, Slot, WaveCfg
from trueup.robot.spec import RobotSpec

SHORTEST_S = 2.0  # of a joint's motion: less shows neither a slow tone nor a settled step


@dataclass(frozen=True, kw_only=True)
class ExcitationCfg:
    """Shape and timing of an excitation.

    seconds        of the whole plan, from rest to rest (the way to its first pose comes on top)
    rate_hz        rows a second: the rate of commands and of the log
    order          "together": all joints at once; "one_by_one": each in an equal share of the time, the
                   others hold
    joints         names of those that move; none named: all
    still_s        rest at both ends: shows noise and sag
    ramp_s         swelling and fading of each motion
    with_velocity  also command the velocity of the targets; else zero, as under a position policy
    """

    kind: Kind = "multisine"
    seconds: float = 20.0
    rate_hz: float = 200.0
    seed: int = 0
    order: Literal["together", "one_by_one"] = "together"
    joints: tuple[str, ...] = ()
    still_s: float = 0.25
    ramp_s: float = 0.5
    with_velocity: bool = False
    wave: WaveCfg = field(default_factory=WaveCfg)
    limits: LimitCfg = field(default_factory=LimitCfg)

    def __post_init__(self) -> None:
        if self.kind not in (*WAVES, "squat"):
            raise TrueupError(f"no excitation {self.kind!r}{did_you_mean(self.kind, WAVES)}")
        if not (0.0 < self.seconds < np.inf and 1.0 <= self.rate_hz <= 100_000.0):
            raise TrueupError(f"seconds must be positive and rate_hz 1 to 100000, found {self.seconds}, {self.rate_hz}")
        if not (0.0 <= self.still_s < np.inf and 0.0 < self.ramp_s < np.inf):
            raise TrueupError("still_s must not be negative and ramp_s must be positive")
        top = max(self.wave.high_hz, *self.wave.ladder_hz)
        if self.kind not in ("hold", "squat") and top > self.rate_hz / 8:
            raise TrueupError(f"{top:g} Hz needs at least 8 rows a period; a rate of {self.rate_hz:g} Hz is too low")


def excite(spec: RobotSpec, cfg: ExcitationCfg | None = None) -> Plan:
    """Make the plan of an excitation."""
    cfg = cfg or ExcitationCfg()
    moving = _moving(spec, cfg)
    rows = round(cfg.seconds * cfg.rate_hz)
    time = clock(rows, cfg.rate_hz)
    still = max(2, round(cfg.still_s * cfg.rate_hz))
    shares = len(moving) if cfg.order == "one_by_one" else 1
    length = (rows - still) // shares - still
    if cfg.kind != "hold" and length / cfg.rate_hz < SHORTEST_S:
        need = shares * (SHORTEST_S + cfg.still_s) + cfg.still_s
        raise TrueupError(
            f"{cfg.seconds:g} s leave {max(length, 0) / cfg.rate_hz:.2f} s for each of {shares} motions; "
            f"ask for at least {np.ceil(need + shares / cfg.rate_hz):.0f} s, or for fewer joints"
        )
    bounds = joint_bounds(spec, cfg.limits, rate_hz=cfg.rate_hz)
    target = np.tile(spec.excitation_pose, (rows, 1))
    for place, joint in enumerate(moving if length > 0 else ()):
        start = still + (place * (length + still) if shares > 1 else 0)
        slot = _slot(cfg, joint, length, (0, 1) if shares > 1 else (place, len(moving)))
        target[start : start + length, joint] += _motion(slot, bounds[joint], cfg)
    speed = np.gradient(target, 1.0 / cfg.rate_hz, axis=0) if cfg.with_velocity else None
    meta: dict[str, object] = {"kind": cfg.kind, "seed": cfg.seed, "config": plain(cfg)}
    return Plan(time=time, joint_names=spec.joint_names, target_pos=target, target_vel=speed, meta=meta)


def plain(cfg: object) -> object:
    """A config as a log keeps it: dicts, lists, strings and numbers."""
    return msgspec.json.decode(msgspec.json.encode(cfg))


def _moving(spec: RobotSpec, cfg: ExcitationCfg) -> list[int]:
    for name in cfg.joints:
        if name not in spec.joint_names:
            raise TrueupError(f"robot {spec.name!r} has no joint {name!r}{did_you_mean(name, spec.joint_names)}")
    return [j for j, name in enumerate(spec.joint_names) if not cfg.joints or name in cfg.joints]


def _slot(cfg: ExcitationCfg, joint: int, rows: int, place: tuple[int, int]) -> Slot:
    random = RowRandom(cfg.seed, f"excitation/{cfg.kind}", 1, first_row=joint)
    return Slot(rows=rows, dt=1.0 / cfg.rate_hz, index=place[0], group=place[1], random=random)


def _motion(slot: Slot, bounds: Bounds, cfg: ExcitationCfg) -> FloatArray:
    """A wave that swells from rest and fades to rest, (rows,); first and last row are zero."""
    if bounds.amplitude <= 0.0:  # the excitation pose lies on a limit: there is nowhere to go
        return np.zeros(slot.rows)
    wave = WAVES[cfg.kind](slot, bounds, cfg.wave)
    ramp = min(cfg.ramp_s / slot.dt, slot.rows / 4)
    row = np.arange(slot.rows)
    window = min_jerk(row / ramp) * min_jerk((slot.rows - 1 - row) / ramp)
    rest = np.pad(wave * window, 1)  # the rows before and after count for the acceleration of the ends
    return fit_into(rest, bounds, slot.dt)[1:-1]
