"""Rewards of tracking: kernels exp(-mean squared error / sigma^2-like scale) of bodies and joints, and how it fails.

Weights and forms follow ASAP (arXiv 2502.01143, table of its appendix) and BeyondMimic (arXiv 2508.08241).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.tasks.sensing.frame import Bool, Float32, Frame


def kernel(gap: Float32, scale: float) -> Float32:
    """exp(-mean of the squared gap / scale) of gaps (n, k), or (n, k, 3) with their lengths."""
    squared = gap * gap if gap.ndim == 2 else np.einsum("nbi,nbi->nb", gap, gap)
    out: Float32 = np.exp(squared.mean(axis=1) * np.float32(-1.0 / scale))
    return out


@dataclass(frozen=True)
class Kernel:
    """The kernel over bodies of a signal with one gap for each tracked body; `bodies` by number."""

    signal: str
    scale: float
    bodies: tuple[int, ...] | None = None

    def __call__(self, frame: Frame) -> Float32:
        gap: Float32 = getattr(frame, self.signal)
        return kernel(gap if self.bodies is None else gap[:, list(self.bodies)], self.scale)


@dataclass(frozen=True)
class JointKernel:
    """The kernel over joint positions; `speed`: over velocities."""

    scale: float
    speed: bool = False

    def __call__(self, frame: Frame) -> Float32:
        return kernel(frame.joint_vel_gap if self.speed else frame.joint_gap, self.scale)


def body_error(frame: Frame) -> Float32:
    """Mean distance of bodies from the reference with both roots laid on each other (E_mpjpe), m."""
    gap = frame.body_gap
    return _length(gap - gap[:, :1]).mean(axis=1)


def global_error(frame: Frame) -> Float32:
    """Mean distance of bodies from the reference in the world (E_g-mpjpe), m."""
    return _length(frame.body_gap).mean(axis=1)


def near_error(frame: Frame) -> Float32:
    """Mean distance of bodies from a reference that stands where the robot does, m."""
    return _length(frame.body_gap_near).mean(axis=1)


def velocity_error(frame: Frame) -> Float32:
    """Mean difference of body velocities (E_vel), m/s."""
    return _length(frame.body_vel_gap).mean(axis=1)


def astray(frame: Frame) -> Bool:
    """Some body is further from a reference that stands where the robot does than the curriculum allows."""
    return _length(frame.body_gap_near).max(axis=1) > frame.tracking_limit


def strayed(frame: Frame) -> Float32:
    """One where `astray` holds."""
    return astray(frame).astype(np.float32)


@dataclass(frozen=True)
class Lost:
    """The bodies are further from the reference than this on average: the episode has failed."""

    most_m: float

    def __call__(self, frame: Frame) -> Bool:
        return global_error(frame) > np.float32(self.most_m)


@dataclass(frozen=True)
class Failed:
    """One where a termination holds."""

    most_m: float

    def __call__(self, frame: Frame) -> Float32:
        return (Lost(self.most_m)(frame) | astray(frame)).astype(np.float32)


def _length(gap: Float32) -> Float32:
    return np.sqrt(np.einsum("nbi,nbi->nb", gap, gap))
