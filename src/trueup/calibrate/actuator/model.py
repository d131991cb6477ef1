"""Actuator: a rung after its fit, ready to drive a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from trueup.calibrate.actuator.rungs import Rung
from trueup.calibrate.nets.net_design import stand_of
from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.models.actuator_net import ActuatorNet
from trueup.models.envelope import Envelope, limit_torque
from trueup.robot.load import Robot
from trueup.world.actuators.net_actuator import NetActuator, put_settings, with_net
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration
from trueup.world.parameters.able_to_set import able_to_set


@dataclass(frozen=True, kw_only=True)
class Actuator:
    """A fitted rung: parameters of the simulator, or a learned model, which carries its own, or none.

    For a net, `params` is the calibration under it, kept where the robot hung on a compliant stand: the stand is
    not part of the net, but needed to replay the logs.
    """

    rung: Rung
    params: Calibration | None = None
    net: ActuatorNet | None = None
    notes: tuple[str, ...] = field(default=())

    def simulation(self, robot: Robot, cfg: SimCfg) -> BatchSim:
        """A batch with everything this model acts on; `apply` sets the values."""
        if self.net is not None:
            cfg = able_to_set(with_net(cfg, self.net), [parameter.name for parameter in stand_of(self.params)])
            return BatchSim(robot, cfg, NetActuator(self.net))
        if self.params is not None:
            cfg = able_to_set(cfg, [entry.name for entry in self.params.parameters])
        return BatchSim(robot, cfg)

    def apply(self, sim: BatchSim) -> None:
        """Set the fitted values; gains must have been set before."""
        if isinstance(sim.substep_model, NetActuator):
            sim.substep_model.prepare(sim)
            put_settings(sim, stand_of(self.params))
        elif self.params is not None:
            self.params.apply(sim)

    @property
    def count(self) -> int:
        """Number of fitted values."""
        if self.net is not None:
            return sum(part.size for group in self.net.layers for layer in group for part in layer)
        return 0 if self.params is None else len(self.params.estimates)

    def torque_error(self, robot: Robot, logs: Sequence[Log]) -> float | None:
        """Root mean square error of the motor's torque at measured states, mean over joints, N m.

        None without measured torque, or for a model whose torque stands for more than the motor's.
        """
        if self.rung.kind == "residual" or not logs or not all("joint_torque" in log for log in logs):
            return None
        if self.net is not None:
            from trueup.calibrate.nets.supervised import make_samples

            parts = [make_samples([log], self.net.spec) for log in logs]
            left = [self.net(part.inputs.astype(np.float64)) - part.torque for part in parts]
        else:
            left = [_servo_torque(robot, log, self.params) - log["joint_torque"] for log in logs]
        return float(np.sqrt((np.concatenate(left) ** 2).mean(axis=0)).mean())


def _servo_torque(robot: Robot, log: Log, params: Calibration | None) -> FloatArray:
    """kp (q* - q) - kd dq with the delayed command, inside the limits."""
    spec, unlimited, delay = robot.spec, np.full(robot.spec.njoint, np.inf), 0.0
    values: dict[str, FloatArray] = {
        "kp": log.signals.get("target_kp", spec.kp),
        "kd": log.signals.get("target_kd", spec.kd),
        "torque_limit": spec.torque_limit,
        "stall_torque": unlimited,
        "no_load_speed": unlimited,
    }
    nominal = {"stall_torque": spec.torque_limit, "no_load_speed": spec.velocity_limit}
    for entry in () if params is None else params.estimates:
        name = entry.parameter.name
        if name == "delay":
            delay = entry.value
        elif name in values:
            applies = np.array([joint in entry.parameter.of for joint in spec.joint_names])
            values[name] = np.where(applies, nominal.get(name, values[name]) * entry.value, values[name])
    rows = np.maximum(np.arange(len(log)) - 1 - int(delay * log.rate_hz + 1e-9), 0)
    velocity = log["joint_vel"] if "joint_vel" in log else np.gradient(log["joint_pos"], log.time, axis=0)
    target_vel = log["target_vel"][rows] if "target_vel" in log else 0.0
    error = log["target_pos"][rows] - log["joint_pos"]
    torque = values["kp"] * error + values["kd"] * (target_vel - velocity)
    if "target_torque" in log:
        torque = torque + log["target_torque"][rows]
    if np.isfinite(values["stall_torque"]).any():
        envelope = Envelope(torque_max=values["stall_torque"], speed_max=values["no_load_speed"])
        torque = limit_torque(envelope, torque, velocity)
    return np.clip(torque, -values["torque_limit"], values["torque_limit"])
