"""A DC motor without inductance, and two controllers of its voltage.

The motor (at the joint, gears included): tau = K V/R - K^2 dq/R, with K the torque constant in N m/A, which
in SI units is the back-EMF constant in V s/rad, and R the winding resistance in Ohm. Inductance, heat and
cogging are not here: the engine has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.models.pd import pd_torque
from trueup.models.values import FloatArray, Values, require_positive


@dataclass(frozen=True, kw_only=True, eq=False)
class DCMotor:
    """Constants of a motor seen at its joint; floats, or arrays that broadcast against the joints.

    k             torque constant, N m/A = V s/rad
    resistance    Ohm
    voltage_max   supply limit, V; infinite means none
    torque_limit  saturation of the driver or gears, N m; infinite means none
    """

    k: Values
    resistance: Values
    voltage_max: Values = np.inf
    torque_limit: Values = np.inf

    def __post_init__(self) -> None:
        require_positive("k", self.k)
        require_positive("resistance", self.resistance)
        require_positive("voltage_max", self.voltage_max, finite=False)
        require_positive("torque_limit", self.torque_limit, finite=False)


def motor_from_datasheet(
    *, stall_torque: Values, no_load_speed: Values, voltage: Values, torque_limit: Values = np.inf
) -> DCMotor:
    """Return the motor with this stall torque (N m) and no-load speed (rad/s) under this voltage (V).

    No torque at no-load speed gives K = V/dq0; no speed at stall gives R = K V/tau0. The voltage becomes the
    motor's limit.
    """
    require_positive("stall_torque", stall_torque)
    require_positive("no_load_speed", no_load_speed)
    require_positive("voltage", voltage)
    k = voltage / no_load_speed
    resistance = k * voltage / stall_torque
    return DCMotor(k=k, resistance=resistance, voltage_max=voltage, torque_limit=torque_limit)


def voltage_torque(motor: DCMotor, volts: Values, dq: Values) -> FloatArray:
    """Return the torque under `volts` at velocity `dq`, voltage and torque within the motor's limits.

    tau = K (clip(V, -Vmax, Vmax) - K dq)/R
    """
    volts = np.clip(volts, np.negative(motor.voltage_max), motor.voltage_max)
    tau = motor.k * (volts - motor.k * dq) / motor.resistance
    return np.clip(tau, np.negative(motor.torque_limit), motor.torque_limit)


def duty_volts(q_target: Values, q: Values, *, gain: Values, supply: Values, duty_max: Values = 1.0) -> FloatArray:
    """Return the voltage of a hobby-class servo: position error to duty cycle, duty cycle of the supply.

    V = supply clip(gain (q* - q), -duty_max, duty_max), with `gain` in duty per rad: the firmware's P setting
    times the factor of the make. No velocity term: back-EMF alone damps the joint (arXiv 2410.08650).
    """
    duty = np.clip(gain * (q_target - q), np.negative(duty_max), duty_max)
    return np.asarray(supply * duty, np.float64)


def servo_torque(
    motor: DCMotor, q_target: Values, q: Values, dq: Values, *, kp: Values, kd: Values, tau_integral: Values = 0.0
) -> FloatArray:
    """Return the torque of a servo that asks for a PD torque and gets what its voltage allows.

    tau_cmd = kp (q* - q) - kd dq + tau_integral
    v       = clip(R/K tau_cmd + K dq, -Vmax, Vmax)
    tau     = clip(K (v - K dq)/R, -torque_limit, torque_limit)

    This is the law of MuJoCo's `<dcmotor input="pos" controller="kp ki kd slew imax vmax"/>`. The voltage is
    clipped here through its image in torque, K (+-Vmax - K dq)/R: the same number, but a command that needs
    no clipping stays exact, so that without limits this is the ideal PD servo bit for bit. `q` is what the
    servo reads, encoder bias included.
    """
    command = pd_torque(q_target, q, dq, kp=kp, kd=kd, tau_ff=tau_integral)
    drop = motor.k * dq
    low = motor.k * (np.negative(motor.voltage_max) - drop) / motor.resistance
    high = motor.k * (motor.voltage_max - drop) / motor.resistance
    tau = np.asarray(np.clip(command, low, high), np.float64)
    return np.clip(tau, np.negative(motor.torque_limit), motor.torque_limit)


def step_integral(integral: Values, error: Values, dt: float, *, integral_max: Values = np.inf) -> FloatArray:
    """Return the error integral (rad s) one step later, within +-integral_max; ki times it is `tau_integral`.

    As in the engine, it runs on while the voltage is clipped: only `integral_max` stops wind-up.
    """
    return np.clip(integral + dt * error, np.negative(integral_max), integral_max)


def slew_target(previous: Values, q_target: Values, dt: float, *, slew_max: Values) -> FloatArray:
    """Return the target that the servo follows in this step: `q_target`, at most slew_max dt away."""
    reach = np.multiply(slew_max, dt)
    return np.clip(q_target, previous - reach, previous + reach)
