"""The simulator from recorded states over a few control steps: errors, and what a correction would do to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.models.actuator_net import ActuatorNet
from trueup.models.delta_net import DeltaNet
from trueup.policy.reading import gravity_in_body
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.net_actuator import NetActuator, put_settings, with_net
from trueup.world.actuators.target_stages import ConstantDelta, LearnedDelta, TargetStage
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.replay.playback import RecordedStretch, joint_seen, play, set_gains
from trueup.world.replay.replay import Prepare, at_rate
from trueup.world.replay.tracks import Tracks

Rows = NDArray[np.intp]
_PROBE_RAD = 0.02  # correction by which the simulator is differentiated
_MOST_SIMS = 3000
_PAST = 4  # commands before a window, at least


@dataclass(frozen=True, kw_only=True)
class Linear:
    """The simulator around its present correction, one row per window.

    inputs   (n, ninput) of the delta action at the start
    error    (n, ny) simulated minus recorded state after the horizon
    slope    (n, ny, ncorrected) of that state by a correction that is held
    """

    inputs: FloatArray
    error: FloatArray
    slope: FloatArray


class DeltaShooting:
    """A robot's simulator on tracks of logs; `prepare` sets the parameters of a calibration, `net` is its servo's."""

    def __init__(
        self,
        robot: Robot,
        tracks: Tracks,
        prepare: Prepare | None = None,
        sim: SimCfg | None = None,
        net: ActuatorNet | None = None,
    ) -> None:
        self.robot, self.tracks, self.prepare, self.net = robot, tracks, prepare, net
        base = "free" if tracks.base_pos is not None else "fixed"
        cfg = sim or SimCfg()
        cfg = replace(cfg, model=replace(cfg.model, base=base) if sim else ModelCfg(base=base))  # type: ignore[arg-type]
        self.cfg = at_rate(robot, replace(cfg, actuator=replace(cfg.actuator, inputs="servo")), tracks.rate_hz)

    def prepared(self, prepare: Prepare) -> DeltaShooting:
        """The same tracks in simulations that `prepare` sets the parameters of."""
        return DeltaShooting(self.robot, self.tracks, prepare, self.cfg)

    def with_net(self, net: ActuatorNet) -> DeltaShooting:
        """The same tracks in simulations with a learned servo, which brings the parameters that it was fitted with."""
        settings = net.spec.settings
        return DeltaShooting(
            self.robot, self.tracks, lambda sim: put_settings(sim, settings), with_net(self.cfg, net), net
        )

    @property
    def base(self) -> FloatArray | None:
        """Gravity and gyro (T, 6) of the logs in the base frame."""
        tracks = self.tracks
        if tracks.base_pos is None or tracks.base_vel is None:
            return None
        return np.concatenate([gravity_in_body(tracks.base_pos[:, 3:]), tracks.base_vel[:, 3:]], axis=1)

    def inputs(self, net: DeltaNet, rows: Rows) -> FloatArray:
        """What the delta action sees at rows of the logs."""
        tracks, base, past = self.tracks, self.base, net.spec.past
        before = np.maximum(rows[:, None] - np.arange(1, past + 1), tracks.first[rows][:, None])
        seen = None if base is None else base[rows]
        return net.inputs(tracks.target[rows], tracks.pos[rows], tracks.vel[rows], seen, tracks.target[before])

    def made(self, nsim: int, stages: tuple[TargetStage, ...] = ()) -> BatchSim:
        """That many simulations of the robot."""
        actuator = None if self.net is None else NetActuator(self.net)
        return BatchSim(self.robot, replace(self.cfg, nsim=nsim), actuator, target_stages=stages)

    def ready(self, recorded: RecordedStretch, stages: tuple[TargetStage, ...] = ()) -> BatchSim:
        """Simulations with the gains of recorded stretches and the parameters of the calibration."""
        sim = self.made(len(recorded.pos), stages)
        set_gains(sim, recorded)
        if self.prepare is not None:
            self.prepare(sim)
        return sim

    @property
    def past(self) -> int:
        """Commands that a simulation must know from before its start."""
        return max(_PAST, int(np.ceil(self.cfg.max_delay_s * self.tracks.rate_hz)) + 1)

    def run(self, starts: Rows, steps: int, stages: tuple[TargetStage, ...], copies: int = 1) -> dict[str, FloatArray]:
        """Play the commands from rows `starts`; qpos and qvel after each step, (copies n, steps, ...)."""
        recorded = self.tracks.recorded(starts, steps, past=self.past).tiled(copies)
        sim = self.ready(recorded, stages)
        out = play(sim, recorded)
        self._sim = sim  # of which `states` reads the layout
        return {"joint_pos": joint_seen(sim, out["qpos"]), **out}

    def states(self, out: dict[str, FloatArray], step: int = -1) -> FloatArray:
        """(n, ny): joint positions and velocities, of a free base gravity, gyro and velocity."""
        sim, qpos, qvel = self._sim, out["qpos"][:, step], out["qvel"][:, step]
        parts = [out["joint_pos"][:, step], qvel[:, sim.index.dof]]
        if sim.free_base:
            at, dof = sim.base_qpos, sim.base_dof
            parts += [gravity_in_body(qpos[:, at + 3 : at + 7]), qvel[:, dof + 3 : dof + 6], qvel[:, dof : dof + 3]]
        return np.concatenate(parts, axis=1)

    def recorded_states(self, rows: Rows) -> FloatArray:
        """The same of the logs."""
        tracks, parts = self.tracks, [self.tracks.pos[rows], self.tracks.vel[rows]]
        if tracks.base_pos is not None and tracks.base_vel is not None:
            vel = tracks.base_vel[rows]
            parts += [gravity_in_body(tracks.base_pos[rows, 3:]), vel[:, 3:], vel[:, :3]]
        return np.concatenate(parts, axis=1)

    def linearise(
        self, net: DeltaNet, starts: Rows, steps: int, progress: Callable[[float], None] | None = None
    ) -> Linear:
        """Errors and slopes by one simulation per corrected joint and window, all joints side by side."""
        corrected, njoint = list(net.spec.corrected), self.robot.spec.njoint
        copies = len(corrected) + 1
        size, errors, slopes = max(1, _MOST_SIMS // copies), [], []
        for k in range(0, len(starts), size):
            part = starts[k : k + size]
            probe = np.zeros((copies, len(part), njoint))
            probe[np.arange(1, copies), :, corrected] = _PROBE_RAD
            stages = (LearnedDelta(net), ConstantDelta(probe.reshape(-1, njoint)))
            after = self.states(self.run(part, steps, stages, copies)).reshape(copies, len(part), -1)
            errors.append(after[0] - self.recorded_states(part + steps))
            slopes.append(np.moveaxis((after[1:] - after[0]) / _PROBE_RAD, 0, -1))
            if progress is not None:
                progress(min(1.0, (k + size) / len(starts)))
        return Linear(inputs=self.inputs(net, starts), error=np.concatenate(errors), slope=np.concatenate(slopes))
