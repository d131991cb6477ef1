"""Each hidden effect, seen over the real socket in another process, against a twin without it.

The pendulum hangs straight down at 0 rad: 0.5 kg at 0.15 m, so gravity gives 0.736 N m sin q. `HEAVY` has
7.85 N m.
"""

from __future__ import annotations

import numpy as np
import pytest
from twin_bench import Plan, Run, Twins

from trueup.robot.load import load_robot

pytestmark = pytest.mark.medium
GRAVITY_NM = 9.81 * 0.15 * 0.5
HEAVY = "pendulum:load_mass=2,load_length=0.4"
HEAVY_NM = 9.81 * 0.4 * 2.0
SMOOTH = "[joint]\nfriction_scale = 0\ndamping_scale = 0\n"


def push(torque: float) -> Plan:
    return lambda t: {"torque": torque}


def at_speed(speed: float) -> Plan:
    return lambda t: {"target_vel": speed, "kd": 100.0}


# --- friction ---
def test_friction_holds_against_a_small_torque(twins: Twins) -> None:
    held = twins.run("[joint]\nfriction_scale = 20", push(0.5), 1.0)
    free = twins.run("[joint]\nfriction_scale = 0", push(0.5), 1.0)
    assert np.abs(held.pos).max() < 0.03  # the engine's own Coulomb friction creeps by 0.02 rad/s here
    assert np.abs(free.pos).max() > 0.5


def test_stiction_holds_what_coulomb_friction_lets_go(twins: Twins) -> None:
    stuck = twins.run('[friction]\nkind = "stribeck"\nstiction = 10\nstribeck_vel = 0.1', push(0.4), 1.0)
    slid = twins.run("[joint]", push(0.4), 1.0)
    assert np.abs(stuck.pos).max() < 0.002
    assert np.abs(slid.pos).max() > 0.4


def test_friction_that_grows_with_load_stops_the_joint_early(twins: Twins) -> None:
    loaded = twins.run('[friction]\nkind = "stribeck"\nload = 0.8', push(0.6), 1.0)
    plain = twins.run("[joint]", push(0.6), 1.0)
    assert np.abs(loaded.pos).max() < 0.3 * np.abs(plain.pos).max()


def test_a_lugre_bristle_bends_and_springs_back(twins: Twins) -> None:
    # Coulomb 1 N m reached after 0.02 rad: 50 N m/rad beside gravity's 0.736
    preset = '[joint]\nfriction_scale = 20\n[friction]\nkind = "lugre"\nbristle = 0.02'
    run = twins.run(preset, lambda t: {"torque": 0.3 if t < 0.5 else 0.0}, 1.0)
    bent, after = run.pos[99, 0], run.pos[-1, 0]
    assert 0.3 / (50.0 + GRAVITY_NM) < bent < 0.0085  # a little beyond the spring: the bristle yields as it bends
    assert abs(after) < 0.35 * bent


def test_lugre_friction_falls_with_speed(twins: Twins) -> None:
    preset = '[joint]\nfriction_scale = 20\ndamping_scale = 0\n[friction]\nkind = "lugre"\n'
    preset += "stiction = 1\nstribeck_vel = 0.3"
    for speed in (0.05, 1.0):
        run = twins.run(preset, at_speed(speed), 0.5)
        friction = run.torque[-1, 0] - GRAVITY_NM * np.sin(run.pos[-1, 0])
        assert friction == pytest.approx(1.0 + np.exp(-((run.vel[-1, 0] / 0.3) ** 1.35)), abs=0.03)
        assert run.vel[-1, 0] > 0.5 * speed


# --- transmission ---
def still(torque: float) -> Plan:
    return lambda t: {"torque": torque, "kd": 3.0}


def windup(twins: Twins, preset: str, torque: float = 0.5) -> float:
    """Motor angle under a torque minus motor angle under its opposite, at rest."""
    plus, minus = (twins.run(preset, still(sign * torque), 6.0, robot=HEAVY).pos[-1, 0] for sign in (1, -1))
    return float(plus - minus)


def test_play_opens_a_dead_band_as_wide_as_set(twins: Twins) -> None:
    without = windup(twins, SMOOTH + "[transmission]\nwindup = 0.02\ndamping = 0.3")
    with_play = windup(twins, SMOOTH + "[transmission]\nwindup = 0.02\ndamping = 0.3\nbacklash = 0.1")
    assert with_play - without == pytest.approx(0.1, abs=0.0005)


def test_a_compliant_gear_winds_up_by_torque_over_stiffness(twins: Twins) -> None:
    rigid = windup(twins, SMOOTH)
    soft = windup(twins, SMOOTH + "[transmission]\nwindup = 0.2\ndamping = 0.3")  # 8 N m / 0.2 rad = 40 N m/rad
    assert rigid == pytest.approx(2 * np.arcsin(0.5 / HEAVY_NM), abs=1e-4)
    assert soft - rigid == pytest.approx(2 * 0.5 / 40.0, rel=0.02)


def test_a_stiffening_gear_winds_up_less_at_the_same_torque(twins: Twins) -> None:
    gear = SMOOTH + "[transmission]\nwindup = 0.2\ndamping = 0.3\n"
    gravity = 2 * np.arcsin(5.0 / HEAVY_NM)
    soft, hard = (0.5 * (windup(twins, gear + text, 5.0) - gravity) for text in ("", "hardening = 2"))
    assert soft == pytest.approx(5.0 / 40.0, rel=0.01)
    assert 40.0 * hard + 2 * 8.0 / 0.2**3 * hard**3 == pytest.approx(5.0, rel=0.01)  # the cubic part: 16 N m at 0.2 rad


def loop_area(run: Run) -> float:
    """Work of the motor over the last cycle of four seconds: what the joint has eaten.

    A row's torque is that of the period before it: the command is held from row to row.
    """
    return float(np.sum(run.torque[-800:, 0] * np.diff(run.pos[-801:, 0])))


def test_hysteresis_encloses_an_area(twins: Twins) -> None:
    gear = "[transmission]\nwindup = 0.1\ndamping = 0.1\nhysteresis_rad = 0.003\n"
    plan: Plan = lambda t: {"torque": 3.0 * np.sin(np.pi / 2 * t) * min(t / 4, 1.0), "kd": 3.0}  # noqa: E731
    plain = twins.run(SMOOTH + gear, plan, 12.0, robot=HEAVY)
    hysteretic = twins.run(SMOOTH + gear + "hysteresis = 0.1", plan, 12.0, robot=HEAVY)
    # a Dahl loop of height H over deflections of +-d, the turns of width x0 cut off: about 4 H (d - x0)
    deflection = (np.abs(hysteretic.torque[-801:]).max() - 0.8) / 80.0
    assert loop_area(hysteretic) == pytest.approx(4 * 0.8 * (deflection - 0.003), rel=0.1)
    assert abs(loop_area(plain)) < 0.05 * loop_area(hysteretic)


# --- delay ---
def torques(twins: Twins, preset: str) -> np.ndarray:
    plan: Plan = lambda t: {"torque": 1.0 if t >= 0.0095 else 0.0}  # noqa: E731 - from 10 ms on
    return twins.run(preset, plan, 0.04, command_hz=1000.0).torque[:, 0]


def test_delay_shifts_the_response_by_the_set_time_to_a_part_of_a_step(twins: Twins) -> None:
    # row k holds the torque of the physics step that ends at k ms
    now = torques(twins, "[joint]")
    late = torques(twins, "[delay]\nseconds = 0.0125")
    assert np.flatnonzero(now)[0] == 11
    assert np.allclose(now[11:], 1.0)
    assert np.flatnonzero(late)[0] == 11 + 12
    assert late[23] == pytest.approx(0.5)  # half of this step has passed when the command falls due
    assert np.allclose(late[24:], 1.0)


def test_jitter_spreads_the_delay_within_its_bound(twins: Twins) -> None:
    plan: Plan = lambda t: {"torque": float(int(t / 0.05 + 1e-6) % 2)}  # noqa: E731 - toggles every 50 ms
    run = twins.run("[delay]\nseconds = 0.005\njitter = 0.01", plan, 3.0, command_hz=1000.0)
    begins = np.flatnonzero(np.diff((run.torque[:, 0] > 1e-9).astype(int)) == 1) + 1
    delays = (begins - 1) % 100 - 50.0  # ms after the toggle
    assert len(begins) > 20
    assert delays.min() >= 5
    assert delays.max() <= 15
    assert delays.std() > 0.5


# --- motors ---
def test_torque_falls_with_speed_along_the_curve(twins: Twins) -> None:
    weak = twins.run(SMOOTH + "[motor]\nno_load_speed = 1\nknee = 0.5", push(8.0), 0.4, command_hz=1000.0)
    strong = twins.run(SMOOTH, push(8.0), 0.4, command_hz=1000.0)
    rows = slice(1, int(np.argmax(weak.pos[:, 0] > 2.0)))
    expected = np.minimum(8.0, 8.0 * (6.0 - weak.vel[rows, 0]) / 3.0)  # limit 8 N m, knee 3 rad/s, nothing at 6 rad/s
    assert np.allclose(weak.torque[1:, 0][rows], expected, atol=1e-6)
    assert weak.vel[rows].max() > 5.0
    assert weak.vel.max() < 6.0 + 1e-6
    assert np.allclose(strong.torque[1:], 8.0)


def test_the_supply_sags_under_load_and_takes_speed_away(twins: Twins) -> None:
    motor = SMOOTH + "[motor]\nno_load_speed = 1\n"
    stiff = twins.run(motor, push(8.0), 1.0)
    sagging = twins.run(motor + "[supply]\nvoltage = 20\nsag = 0.4", push(8.0), 1.0)
    assert np.all(stiff.voltage == 24.0)
    assert sagging.voltage[0] == 20.0
    # at the stop: copper loss of 0.3 x 48 W at the full 8 N m, through R = 0.4 V^2 / 48 W
    power, resistance = 0.3 * 48.0 * (sagging.torque[-1, 0] / 8.0) ** 2, 0.4 * 20.0**2 / 48.0
    assert sagging.voltage[-1] == pytest.approx(10.0 + np.sqrt(100.0 - resistance * power), rel=1e-3)
    assert sagging.torque[-1, 0] == pytest.approx(8.0 * sagging.voltage[-1] / 20.0, rel=1e-3)
    assert sagging.vel.max() < stiff.vel.max()


def test_motors_warm_up_and_lose_torque(twins: Twins) -> None:
    heat = "[heat]\nambient = 20\nrise = 100\ntime_constant = 2\nderate_from = 50\nderate_to = 70\nderate_floor = 0.5"
    hot = twins.run(heat, push(8.0), 3.0)
    cold = twins.run("[joint]", push(8.0), 3.0)
    assert hot.temperature[0, 0] == 20.0
    early = hot.time < 0.5  # at full torque: T = 20 + 100 (1 - exp(-t/2))
    assert np.allclose(hot.temperature[early, 0], 20.0 + 100.0 * -np.expm1(-hot.time[early] / 2.0), atol=1.0)
    share = 1.0 - 0.5 * np.clip((hot.temperature[-1, 0] - 50.0) / 20.0, 0.0, 1.0)
    assert hot.torque[-1, 0] == pytest.approx(8.0 * share, rel=0.01)
    assert hot.torque[-1, 0] < 6.0
    assert np.all(cold.temperature == 25.0)
    assert np.allclose(cold.torque[1:], 8.0)


def test_a_weak_motor_reports_more_torque_than_it_gives(twins: Twins) -> None:
    plan: Plan = lambda t: {"target_pos": 1.0, "kp": 20.0, "kd": 0.3}  # noqa: E731
    true, weak = (twins.run(f"{SMOOTH}torque_scale = {scale}", plan, 3.0) for scale in (1.0, 0.8))
    for run, scale in ((true, 1.0), (weak, 0.8)):
        assert run.torque[-1, 0] * scale == pytest.approx(GRAVITY_NM * np.sin(run.pos[-1, 0]), rel=1e-3)
    assert weak.pos[-1, 0] < true.pos[-1, 0]


# --- bodies ---
def test_rotor_inertia_and_damping_slow_the_joint(twins: Twins) -> None:
    light = twins.run(SMOOTH, push(1.0), 0.02, command_hz=1000.0)
    rotor = twins.run(SMOOTH + "armature_add = 0.05", push(1.0), 0.02, command_hz=1000.0)
    # 1 N m on armature 0.01 + load 0.5 x 0.15^2 + its own 1.25e-4 + arm 2e-6, first millisecond
    inertia = 0.01 + 0.5 * 0.15**2 + 1.25e-4 + 2e-6
    assert light.vel[1, 0] == pytest.approx(1e-3 / inertia, rel=1e-3)
    assert rotor.vel[1, 0] == pytest.approx(1e-3 / (inertia + 0.05), rel=1e-3)
    damped = twins.run("[joint]\nfriction_scale = 0\ndamping_scale = 0\ndamping_add = 1.0", push(1.0), 0.3)
    assert damped.vel[-1, 0] < 0.5 * light.vel[-1, 0] + 1.0


def level_torque(twins: Twins, preset: str) -> float:
    """Torque that holds the arm level, from one that holds it nearly so."""
    plan: Plan = lambda t: {"target_pos": min(t, np.pi / 2), "kp": 200.0, "kd": 4.0}  # noqa: E731
    run = twins.run(SMOOTH + preset, plan, 3.0)
    assert abs(run.vel[-1, 0]) < 1e-3
    return float(run.torque[-1, 0] / np.sin(run.pos[-1, 0]))


def test_wrong_masses_change_the_holding_torque(twins: Twins) -> None:
    assert level_torque(twins, "") == pytest.approx(GRAVITY_NM, rel=1e-3)
    assert level_torque(twins, "[body]\nmass_scale = 2") == pytest.approx(2 * GRAVITY_NM, rel=1e-3)


def test_a_moved_centre_of_mass_changes_the_holding_torque(twins: Twins) -> None:
    # every axis of every body is moved by 2 cm; level, only the move along the arm (towards the joint) has a lever
    moved = level_torque(twins, "[body]\ncom_offset = 0.02")
    assert moved == pytest.approx(9.81 * (0.5 * (0.15 - 0.02) - 0.02 * 0.02), rel=0.01)


def test_a_payload_at_the_tool_adds_to_the_holding_torque(twins: Twins) -> None:
    robot_mass = 1.0 + 0.02 + 0.5
    carried = level_torque(twins, "[payload]\nmass = 0.5")
    assert carried == pytest.approx(GRAVITY_NM + 9.81 * 0.15 * 0.5 * robot_mass, rel=1e-3)


def test_wrong_inertia_changes_the_acceleration(twins: Twins) -> None:
    nominal, slow = (
        twins.run(SMOOTH + text, push(1.0), 0.002, command_hz=1000.0).vel[1, 0]
        for text in ("", "[body]\ninertia_scale = 10")
    )
    added = 1e-3 / slow - 1e-3 / nominal
    assert added == pytest.approx(9 * (1.25e-4 + 2e-6), rel=1e-3)


def test_soft_and_slippery_ground_are_felt(twins: Twins) -> None:
    plan: Plan = lambda t: {"target_pos": load_robot("go2").spec.default_pose, "kp": 80.0, "kd": 1.0}  # noqa: E731
    hard, soft, slick = (
        # joints with damping of their own, so that what bounces is the ground
        twins.run(f"[joint]\ndamping_add = 2.0\n[ground]\n{text}", plan, 1.0, robot="go2", base="free")
        for text in ("timeconst = 0.01", "timeconst = 0.2", "timeconst = 0.01\nfriction = 0.05")
    )
    assert hard.acc is not None
    assert soft.acc is not None
    assert soft.acc[:, 2].max() < 0.75 * hard.acc[:, 2].max()  # the feet sink in instead of bouncing the base up
    hips = slice(0, None, 3)
    assert np.abs(slick.pos[-1] - slick.pos[0])[hips].mean() > 1.2 * np.abs(hard.pos[-1] - hard.pos[0])[hips].mean()


# --- sensors ---
def test_encoder_bias_shifts_what_is_read(twins: Twins) -> None:
    run = twins.run("[joint]\nencoder_bias = 0.05", lambda t: {}, 0.2)
    true = twins.run("[joint]", lambda t: {}, 0.2)
    assert np.allclose(run.pos - true.pos, 0.05, atol=1e-9)


def test_encoder_bias_moves_where_the_servo_holds_the_joint(twins: Twins) -> None:
    plan: Plan = lambda t: {"target_pos": 1.0, "kp": 20.0, "kd": 0.3}  # noqa: E731
    run = twins.run(SMOOTH + "encoder_bias = 0.1", plan, 3.0)
    assert run.torque[-1, 0] == pytest.approx(GRAVITY_NM * np.sin(run.pos[-1, 0] - 0.1), rel=1e-3)


def test_noise_has_the_set_deviations(twins: Twins) -> None:
    run = twins.run("[sensors]\nposition_noise = 0.01\nvelocity_noise = 0.2\ntorque_noise = 0.05", lambda t: {}, 5.0)
    assert run.pos.std() == pytest.approx(0.01, rel=0.1)
    assert run.vel.std() == pytest.approx(0.2, rel=0.1)
    assert run.torque.std() == pytest.approx(0.05 * 8.0, rel=0.1)


def test_readings_come_in_counts_of_the_encoder(twins: Twins) -> None:
    plan: Plan = lambda t: {"target_pos": np.sin(5 * t), "kp": 20.0, "kd": 0.3}  # noqa: E731
    run = twins.run("[sensors]\nencoder_counts = 1000\nvelocity_step = 0.25", plan, 1.0)
    counts, steps = run.pos / (2 * np.pi / 1000), run.vel / 0.25
    assert np.allclose(counts, np.rint(counts), atol=1e-9)
    assert np.allclose(steps, np.rint(steps), atol=1e-9)
    assert len(np.unique(np.rint(counts))) > 20


def test_the_imu_has_bias_and_noise_about_the_truth(twins: Twins) -> None:
    preset = "[sensors]\ngyro_noise = 0.02\ngyro_bias = 0.1\nacc_noise = 0.3\nacc_bias = -0.5"
    run = twins.run(preset, lambda t: {}, 5.0, robot="go2")
    assert run.gyro is not None
    assert run.acc is not None
    assert np.allclose(run.gyro.mean(axis=0), 0.1, atol=0.005)
    assert np.allclose(run.gyro.std(axis=0), 0.02, rtol=0.1)
    assert np.allclose(run.acc.mean(axis=0), [-0.5, -0.5, 9.81 - 0.5], atol=0.05)
    assert np.allclose(run.acc.std(axis=0), 0.3, rtol=0.1)
