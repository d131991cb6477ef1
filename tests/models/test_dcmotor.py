"""The DC motor: numbers by hand, the ideal servo as its limit, MuJoCo's own actuators as second opinion."""

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.models.dcmotor import (
    DCMotor,
    duty_volts,
    motor_from_datasheet,
    servo_torque,
    slew_target,
    step_integral,
    voltage_torque,
)
from trueup.models.pd import pd_torque
from trueup.models.values import FloatArray

KP, KD = 10.0, 0.8


def engine_model(actuator: str, dt: float = 0.002) -> mujoco.MjModel:
    """A hinge with one actuator; heavy, so that a few steps hardly move it."""
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><compiler angle="radian"/><option timestep="{dt}" gravity="0 0 0"/>
        <worldbody><body><joint name="j" armature="1e6"/><geom size=".1"/></body></worldbody>
        <actuator>{actuator}</actuator></mujoco>"""
    )


def engine_torques(actuator: str, target: FloatArray, q: FloatArray, dq: FloatArray) -> FloatArray:
    model = engine_model(actuator)
    data = mujoco.MjData(model)
    torques = np.empty_like(target)
    for k in range(len(target)):
        data.ctrl[0], data.qpos[0], data.qvel[0] = target[k], q[k], dq[k]
        mujoco.mj_forward(model, data)
        torques[k] = data.actuator_force[0]
    return torques


def random_states(n: int = 300) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(5)
    return rng.uniform(-2, 2, n), rng.uniform(-2, 2, n), rng.uniform(-40, 40, n)


def test_torque_under_voltage_matches_numbers_by_hand() -> None:
    motor = DCMotor(k=0.5, resistance=2.0, voltage_max=12.0)
    tau = voltage_torque(motor, np.array([12.0, 6.0, 40.0, -12.0]), np.array([0.0, 4.0, 0.0, 4.0]))
    np.testing.assert_allclose(tau, [3.0, 1.0, 3.0, -3.5])


def test_datasheet_gives_back_its_stall_torque_and_no_load_speed() -> None:
    motor = motor_from_datasheet(stall_torque=3.0, no_load_speed=24.0, voltage=12.0)
    assert (motor.k, motor.resistance) == (0.5, 2.0)
    assert voltage_torque(motor, 12.0, 0.0) == pytest.approx(3.0)
    assert voltage_torque(motor, 12.0, 24.0) == pytest.approx(0.0)


def test_hobby_servo_turns_position_error_into_clipped_duty() -> None:
    volts = duty_volts(np.array([0.1, 1.0, -1.0]), 0.0, gain=32 * 0.158, supply=15.0, duty_max=0.9625)
    np.testing.assert_allclose(volts, [15.0 * 0.1 * 5.056, 14.4375, -14.4375])


def test_unlimited_motor_is_the_ideal_pd_servo_bit_for_bit() -> None:
    target, q, dq = random_states()
    tau = servo_torque(DCMotor(k=0.37, resistance=1.9), target, q, dq, kp=KP, kd=KD)
    np.testing.assert_array_equal(tau, pd_torque(target, q, dq, kp=KP, kd=KD))


def test_clipping_in_torque_equals_clipping_the_voltage() -> None:
    target, q, dq = random_states()
    motor = DCMotor(k=0.5, resistance=2.0, voltage_max=12.0, torque_limit=6.0)
    volts = 2.0 / 0.5 * (KP * (target - q) - KD * dq) + 0.5 * dq
    assert 0.2 < np.mean(np.abs(volts) > 12.0) < 0.98
    tau = servo_torque(motor, target, q, dq, kp=KP, kd=KD)
    np.testing.assert_allclose(tau, voltage_torque(motor, volts, dq), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("torque_limit", [np.inf, 2.0])
@pytest.mark.parametrize("voltage_max", [np.inf, 12.0])
def test_servo_torque_is_that_of_the_engines_dcmotor(voltage_max: float, torque_limit: float) -> None:
    target, q, dq = random_states()
    vmax = f" 0 0 {voltage_max}" if np.isfinite(voltage_max) else ""
    saturation = f'saturation="{torque_limit}"' if np.isfinite(torque_limit) else ""
    actuator = f'<dcmotor joint="j" input="pos" controller="{KP} 0 {KD}{vmax}" nominal="12 3 24" {saturation}/>'
    motor = DCMotor(k=0.5, resistance=2.0, voltage_max=voltage_max, torque_limit=torque_limit)
    expected = engine_torques(actuator, target, q, dq)
    np.testing.assert_allclose(servo_torque(motor, target, q, dq, kp=KP, kd=KD), expected, rtol=1e-12, atol=1e-12)


def test_torque_under_voltage_is_that_of_the_engines_dcmotor() -> None:
    volts, q, dq = random_states()
    expected = engine_torques('<dcmotor joint="j" motorconst="0.5" resistance="2"/>', 6.0 * volts, q, dq)
    tau = voltage_torque(DCMotor(k=0.5, resistance=2.0), 6.0 * volts, dq)
    np.testing.assert_allclose(tau, expected, rtol=1e-12, atol=1e-12)


def test_unlimited_motor_is_the_engines_position_servo() -> None:
    target, q, dq = random_states()
    actuator = f'<position joint="j" kp="{KP}" kv="{KD}" forcerange="-5 5"/>'
    motor = DCMotor(k=0.5, resistance=2.0, torque_limit=5.0)
    expected = engine_torques(actuator, target, q, dq)
    np.testing.assert_allclose(servo_torque(motor, target, q, dq, kp=KP, kd=KD), expected, rtol=1e-12, atol=1e-12)


def test_integral_and_slew_follow_the_engine_step_by_step() -> None:
    ki, slew, integral_max, dt = 100.0, 3.0, 0.002, 0.01
    actuator = f"""<dcmotor joint="j" input="pos" controller="{KP} {ki} {KD} {slew} {integral_max} 12"
        nominal="12 3 24"/>"""
    model = engine_model(actuator, dt)
    data = mujoco.MjData(model)
    motor = motor_from_datasheet(stall_torque=3.0, no_load_speed=24.0, voltage=12.0)
    integral, target = np.zeros(1), np.zeros(1)
    clipped = 0
    for command in [0.25] * 15 + [-0.1] * 25:
        data.ctrl[0] = command
        q, dq = data.qpos.copy(), data.qvel.copy()
        mujoco.mj_step(model, data)
        target = slew_target(target, command, dt, slew_max=slew)
        tau = servo_torque(motor, target, q, dq, kp=KP, kd=KD, tau_integral=ki * integral)
        integral = step_integral(integral, target - q, dt, integral_max=integral_max)
        clipped += int(abs(integral[0]) == integral_max)
        np.testing.assert_allclose(tau, data.actuator_force, rtol=1e-12, atol=1e-12)
    assert 0 < clipped < 40


def test_one_row_equals_row_k_of_many() -> None:
    rng = np.random.default_rng(6)
    target, q, dq = 3.0 * rng.normal(size=(3, 37, 12))
    motor = DCMotor(k=rng.uniform(0.1, 1.0, 12), resistance=2.0, voltage_max=12.0, torque_limit=4.0)
    together = servo_torque(motor, target, q, dq, kp=KP, kd=KD)
    for k in (0, 18, 36):
        row = slice(k, k + 1)
        np.testing.assert_array_equal(servo_torque(motor, target[row], q[row], dq[row], kp=KP, kd=KD), together[row])


@pytest.mark.parametrize("name", ["k", "resistance", "voltage_max", "torque_limit"])
def test_constant_that_is_not_positive_is_named(name: str) -> None:
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(TrueupError, match=f"^{name}: "):
            DCMotor(**{"k": 0.5, "resistance": 2.0, name: bad})


def test_datasheet_without_a_no_load_speed_is_refused() -> None:
    with pytest.raises(TrueupError, match="no_load_speed must be above zero"):
        motor_from_datasheet(stall_torque=3.0, no_load_speed=0.0, voltage=12.0)
