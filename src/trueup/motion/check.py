"""Check of a motion: jumps, foot skate, penetration, limits, speeds, quaternions; each finding says what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.motion.bodies import BodyMotion, BodyTree
from trueup.motion.motion import Motion
from trueup.robot.load import Robot

Level = Literal["error", "warning", "note"]
_FIXES = {
    "quaternion_norm": "the four columns are no rotation: check which columns hold it",
    "quaternion_order": "read the file again with the other order: --quat wxyz (or xyzw)",
    "jump": "cut the motion there, or drop those rows: --start, --end; a first row that is another pose is common",
    "floating": "import with --mend: the motion is lowered until its lowest point touches the ground",
    "penetration": "import with --mend: the motion is raised; if only some rows are below, retarget with the feet held",
    "skate": "retarget with the feet held on contact, or expect the policy to slide as the reference does",
    "tilted_feet": "retarget with flat feet while they stand: a robot cannot stand on an edge",
    "limits": "import with --mend: joints are held within their limits; or retarget with limits",
    "speed": "play it slower (a lower --rate), or retarget with velocity limits",
}
_JUMP_M, _JUMP_RAD, _JUMP_TURN_RAD = 0.08, 0.5, 0.5  # in one row, beyond what its neighbours do
_SKATE_M_S, _SINK_M, _FLOAT_M, _TILT_RAD = 0.05, 0.01, 0.03, 0.1
_WRONG_M_S = 0.3  # mean speed of the lower foot, beyond which the order of quaternions is doubted
_NEAR_M = 0.01  # of the ground: a point of a foot that stands


@dataclass(frozen=True)
class MotionFinding:
    """One flaw: a stable code, how bad, what was seen, and the rows where it is worst."""

    code: str
    level: Level
    evidence: str
    row: int = 0

    @property
    def fix(self) -> str:
        return _FIXES[self.code]


@dataclass(frozen=True, kw_only=True)
class MotionReport:
    """Findings, worst first, and figures of quality in SI units."""

    findings: tuple[MotionFinding, ...]
    figures: dict[str, float]

    @property
    def usable(self) -> bool:
        return all(one.level != "error" for one in self.findings)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "usable": self.usable,
            "findings": [asdict(one) | {"fix": one.fix} for one in self.findings],
            "figures": self.figures,
        }


def check_motion(motion: Motion, robot: Robot, tree: BodyTree | None = None) -> MotionReport:
    """Look for what a policy could not follow, or should not."""
    tree = tree or BodyTree(robot)
    bodies = BodyMotion(motion.body_pos, motion.body_quat)
    found = [*_quaternions(motion, tree), *_jumps(motion)]
    figures: dict[str, float] = {"seconds": motion.seconds, "rows": float(len(motion))}
    if tree.feet:
        found += _feet(motion, tree.points(bodies), figures)
    found += _joints(motion, robot, figures)
    order = ("error", "warning", "note")
    return MotionReport(findings=tuple(sorted(found, key=lambda one: order.index(one.level))), figures=figures)


def _quaternions(motion: Motion, tree: BodyTree) -> list[MotionFinding]:
    norm = np.linalg.norm(motion.root_quat, axis=1)
    if np.abs(norm - 1.0).max() > 0.01:
        row = int(np.abs(norm - 1.0).argmax())
        return [MotionFinding("quaternion_norm", "error", f"length {norm[row]:.3f} in row {row}", row)]
    if not tree.feet:
        return []
    # a robot that turns slides over the ground and tilts if its rotation is read in the wrong order
    orders = {
        "this": motion.root_quat,
        "w last": motion.root_quat[:, [3, 0, 1, 2]],
        "w first": motion.root_quat[:, [1, 2, 3, 0]],
    }
    slides = {name: _slide(motion, tree, quat) for name, quat in orders.items()}
    best = min(slides, key=lambda name: slides[name])
    if best != "this" and slides["this"] > _WRONG_M_S and slides[best] < 0.4 * slides["this"]:
        slow, fast = 100 * slides[best], 100 * slides["this"]
        what = f"feet slide at {fast:.0f} cm/s, and at {slow:.0f} cm/s if the file has {best}"
        return [MotionFinding("quaternion_order", "error", what)]
    return []


def _slide(motion: Motion, tree: BodyTree, quat: FloatArray) -> float:
    """Mean speed over the ground of the lower foot, whatever its height, m/s."""
    points = tree.points(tree.place(motion.root_pos, quat, motion.joint_pos))
    speed = np.linalg.norm(np.gradient(points, axis=0), axis=-1) * motion.rate_hz
    lower = points[..., 2].reshape(len(points), -1).argmin(axis=1)
    return float(speed.reshape(len(points), -1)[np.arange(len(points)), lower].mean())


def _jumps(motion: Motion) -> list[MotionFinding]:
    """Rows that are apart from the row before by more than three times what rows around them are."""
    dots = np.abs(np.sum(motion.root_quat[1:] * motion.root_quat[:-1], axis=1))
    steps = {
        "root": (np.linalg.norm(np.diff(motion.root_pos, axis=0), axis=1), _JUMP_M, "m"),
        "root turn": (2 * np.arccos(np.minimum(dots, 1.0)), _JUMP_TURN_RAD, "rad"),
    }
    if motion.joint_names:
        steps["joints"] = (np.abs(np.diff(motion.joint_pos, axis=0)).max(axis=1), _JUMP_RAD, "rad")
    out = []
    for name, (size, least, unit) in steps.items():
        around = _usual(size)
        bad = np.flatnonzero((size > least * min(1.0, 50.0 / motion.rate_hz)) & (size > 3.0 * around))
        if len(bad):
            k = int(bad[size[bad].argmax()])
            what = (
                f"{name}: {size[k]:.2f} {unit} from row {k} to {k + 1} ({k / motion.rate_hz:.2f} s), {len(bad)} in all"
            )
            out.append(MotionFinding("jump", "error", what, k))
    return out


def _usual(size: FloatArray) -> FloatArray:
    """Median of the values up to four rows before and after each, itself left out."""
    padded = np.concatenate([np.full(4, np.nan), size, np.full(4, np.nan)])
    window = np.lib.stride_tricks.sliding_window_view(padded, 9).copy()
    window[:, 4] = np.nan
    alone = np.isnan(window).all(axis=1)
    window[alone] = 0.0
    out: FloatArray = np.nanmedian(window, axis=1)
    return out


def _feet(motion: Motion, points: FloatArray, figures: dict[str, float]) -> list[MotionFinding]:
    """`points` (T, nfoot, npoint, 3) are the undersides of the feet."""
    height = points[..., 2]
    lowest = height.min(axis=(1, 2))
    near = height < _NEAR_M
    velocity = np.gradient(points[..., :2], axis=0) * motion.rate_hz
    slide = np.linalg.norm(velocity, axis=-1)[near]
    standing = near.any(axis=2)
    tilt = np.ptp(height, axis=2)[standing] / max(float(np.ptp(points[0, 0, :, 0])), 0.05)
    figures |= {
        "skate_m_s": float(slide.mean()) if slide.size else 0.0,
        "penetration_m": float(max(0.0, -lowest.min())),
        "lowest_m": float(lowest.min()),
        "stance_tilt_rad": float(np.median(tilt)) if tilt.size else 0.0,
        "stance_share": float(standing.mean()),
    }
    out = []
    if figures["penetration_m"] > _SINK_M:
        row = int(lowest.argmin())
        what = f"feet reach {-lowest[row] * 1e3:.0f} mm below the ground at {row / motion.rate_hz:.2f} s"
        level: Level = "error" if figures["penetration_m"] > 5 * _SINK_M else "warning"
        out.append(MotionFinding("penetration", level, what, row))
    if lowest.min() > _FLOAT_M:
        out.append(MotionFinding("floating", "warning", f"feet are never below {lowest.min() * 1e3:.0f} mm"))
    if figures["skate_m_s"] > _SKATE_M_S:
        what = f"points that stand slide at {figures['skate_m_s'] * 100:.0f} cm/s on average"
        out.append(MotionFinding("skate", "warning", what))
    if points.shape[2] > 1 and figures["stance_tilt_rad"] > _TILT_RAD:
        what = f"feet that stand are tilted by {np.degrees(figures['stance_tilt_rad']):.0f} degrees (median)"
        out.append(MotionFinding("tilted_feet", "note", what))
    return out


def _joints(motion: Motion, robot: Robot, figures: dict[str, float]) -> list[MotionFinding]:
    spec = robot.spec
    beyond = np.maximum(spec.position_low - motion.joint_pos, motion.joint_pos - spec.position_high).max(axis=0)
    use = np.abs(motion.joint_vel).max(axis=0) / spec.velocity_limit
    figures |= {"beyond_limits_rad": float(max(0.0, beyond.max())), "speed_use": float(use.max())}
    out = []
    if beyond.max() > 1e-3:
        k = int(beyond.argmax())
        what = f"{spec.joint_names[k]} is {beyond[k]:.3f} rad beyond its limits; {(beyond > 1e-3).sum()} joints in all"
        out.append(MotionFinding("limits", "warning" if beyond[k] < 0.1 else "error", what))
    if use.max() > 1.0:
        k = int(use.argmax())
        speed = use[k] * spec.velocity_limit[k]
        what = f"{spec.joint_names[k]} reaches {speed:.1f} rad/s, its motor {spec.velocity_limit[k]:.1f}"
        row = int(np.abs(motion.joint_vel[:, k]).argmax())
        out.append(MotionFinding("speed", "warning", f"{what}, at {row / motion.rate_hz:.2f} s", row))
    return out
