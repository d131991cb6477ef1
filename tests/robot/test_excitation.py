"""Excitation: every plan is finite, inside its limits, at rest at both ends, and worth recording."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.excitation.excitation import ExcitationCfg, excite
from trueup.robot.excitation.limits import Bounds, LimitCfg, joint_bounds, sensible_rate_hz
from trueup.robot.excitation.plan import Plan, join_plans, min_jerk, move_distance, move_plan, move_time, scale_plan
from trueup.robot.excitation.squat import squat, stiffened
from trueup.robot.excitation.waves import WAVES, WaveCfg, schroeder_phases
from trueup.robot.load import load_robot, zoo_names
from trueup.robot.model import ModelCfg, compile_model, joint_index
from trueup.robot.spec import RobotSpec

SPECS = {name: load_robot(name).spec for name in zoo_names()}
KINDS = tuple(WAVES)
MOVING = tuple(kind for kind in KINDS if kind != "hold")
FloatArray = NDArray[np.float64]


def long_enough(spec: RobotSpec, kind: str, order: str) -> float:
    """Seconds that a kind needs with its default numbers."""
    one = 20.0 if "ladder" in kind else 3.0
    return one * (spec.njoint if order == "one_by_one" else 1) + 1.0


def assert_safe(spec: RobotSpec, plan: Plan, limits: LimitCfg) -> None:
    assert np.isfinite(plan.target_pos).all()
    assert (plan.target_pos >= spec.position_low).all()
    assert (plan.target_pos <= spec.position_high).all()
    assert (np.abs(plan.velocity()) <= limits.velocity_fraction * spec.velocity_limit * (1 + 1e-6)).all()
    for end in (plan.target_pos[:2], plan.target_pos[-2:]):
        assert (end == spec.excitation_pose).all()


@settings(max_examples=60, deadline=None)
@given(
    robot=st.sampled_from(sorted(SPECS)),
    kind=st.sampled_from(KINDS),
    order=st.sampled_from(["together", "one_by_one"]),
    seed=st.integers(0, 2**32),
    extra_s=st.floats(0.0, 10.0),
    rate_hz=st.sampled_from([64.0, 100.0, 200.0, 333.3]),
    amplitude=st.floats(0.01, 3.0),
    fraction=st.floats(0.05, 1.0),
    rise_s=st.floats(0.01, 1.0),
    still_s=st.floats(0.0, 0.5),
    ramp_s=st.floats(0.01, 2.0),
)
def test_any_plan_of_any_robot_is_safe(
    robot: str,
    kind: str,
    order: str,
    seed: int,
    extra_s: float,
    rate_hz: float,
    amplitude: float,
    fraction: float,
    rise_s: float,
    still_s: float,
    ramp_s: float,
) -> None:
    spec = SPECS[robot]
    limits = LimitCfg(amplitude_rad=amplitude, velocity_fraction=fraction, rise_s=rise_s)
    cfg = ExcitationCfg(
        kind=kind,  # type: ignore[arg-type]
        order=order,  # type: ignore[arg-type]
        seed=seed,
        seconds=long_enough(spec, kind, order) + extra_s + still_s * (spec.njoint + 1),
        rate_hz=rate_hz,
        limits=limits,
        still_s=still_s,
        ramp_s=ramp_s,
    )
    plan = excite(spec, cfg)
    assert_safe(spec, plan, limits)
    assert len(plan) == round(cfg.seconds * rate_hz)
    acceleration = np.diff(plan.target_pos, n=2, axis=0) / plan.dt**2
    assert (np.abs(acceleration) <= fraction * spec.velocity_limit / rise_s * (1 + 1e-6)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["together", "one_by_one"])
def test_a_seed_gives_the_same_plan_and_another_seed_another(kind: str, order: str) -> None:
    spec = SPECS["so101"]
    seconds = long_enough(spec, kind, order)
    cfg = ExcitationCfg(kind=kind, order=order, seconds=seconds, seed=7)  # type: ignore[arg-type]
    one, again, other = excite(spec, cfg), excite(spec, cfg), excite(spec, replace(cfg, seed=8))
    assert (one.target_pos == again.target_pos).all()
    is_random = kind != "hold" and (order == "together" or kind == "random_holds")
    assert (one.target_pos != other.target_pos).any() == is_random


@pytest.mark.parametrize("kind", MOVING)
def test_every_joint_uses_a_good_part_of_what_it_may(kind: str) -> None:
    spec = SPECS["go2"]
    plan = excite(spec, ExcitationCfg(kind=kind, seconds=20.0))  # type: ignore[arg-type]
    bounds = joint_bounds(spec, LimitCfg(), rate_hz=200.0)
    for j, bound in enumerate(bounds):
        used = np.abs(plan.target_pos[:, j] - spec.default_pose[j]).max()
        assert used > 0.5 * bound.amplitude, spec.joint_names[j]


@pytest.mark.parametrize("kind", ["multisine", "chirp", "random_holds", "steps"])
def test_joints_that_move_together_do_different_things(kind: str) -> None:
    plan = excite(SPECS["go2"], ExcitationCfg(kind=kind, seconds=30.0))  # type: ignore[arg-type]
    correlation = np.corrcoef(plan.target_pos.T) - np.eye(12)
    assert np.abs(correlation).max() < 0.4


def test_multisine_of_joints_together_is_orthogonal() -> None:
    plan = excite(SPECS["go2"], ExcitationCfg(seconds=20.0))
    correlation = np.corrcoef(plan.target_pos.T) - np.eye(12)
    assert np.abs(correlation).max() < 0.08  # not zero: the ends are faded


def test_short_multisine_of_many_joints_still_has_tones_for_each() -> None:
    plan = excite(SPECS["go2"], ExcitationCfg(seconds=3.0))
    moved = np.abs(plan.target_pos - SPECS["go2"].default_pose).max(axis=0)
    assert (moved > 0.05).all()


def test_one_by_one_moves_one_joint_at_a_time_in_spec_order() -> None:
    spec = SPECS["so101"]
    plan = excite(spec, ExcitationCfg(kind="chirp", order="one_by_one", seconds=20.0))
    moves = np.abs(plan.target_pos - spec.default_pose) > 1e-9
    assert moves.sum(axis=1).max() == 1
    firsts = [int(np.argmax(moves[:, j])) for j in range(spec.njoint)]
    assert firsts == sorted(firsts)
    assert moves.any(axis=0).all()


def test_only_the_joints_named_move() -> None:
    spec = SPECS["go2"]
    plan = excite(spec, ExcitationCfg(joints=("FR_calf_joint", "FL_hip_joint"), seconds=5.0))
    moved = (plan.target_pos != spec.default_pose).any(axis=0)
    assert {name for name, does in zip(spec.joint_names, moved, strict=True) if does} == {
        "FL_hip_joint",
        "FR_calf_joint",
    }


@pytest.mark.parametrize(("sweep", "mean_hz"), [("log", 5.5 / np.log(12.0)), ("linear", 3.25)])
def test_chirp_sweeps_the_band_upwards(sweep: str, mean_hz: float) -> None:
    wave = WaveCfg(low_hz=0.5, high_hz=6.0, sweep=sweep)  # type: ignore[arg-type]
    plan = excite(SPECS["pendulum"], ExcitationCfg(kind="chirp", seconds=20.0, wave=wave))
    crossings = np.flatnonzero(np.diff(np.signbit(plan.target_pos[52:-52, 0])))
    assert len(crossings) / 2 == pytest.approx(mean_hz * 19.5, abs=1.0)
    halves = np.diff(crossings)
    assert halves[0] > 4 * halves[-1]
    assert (np.diff(halves) <= 1).all()  # ever faster; one row of rounding


def test_multisine_stays_in_its_band() -> None:
    spec = SPECS["pendulum"]
    cfg = ExcitationCfg(seconds=20.0, wave=WaveCfg(low_hz=0.5, high_hz=4.0))
    x = excite(spec, cfg).target_pos[:, 0]
    power = np.abs(np.fft.rfft(x)) ** 2
    hz = np.fft.rfftfreq(len(x), 1 / 200)
    inside = power[(hz > 0.4) & (hz < 4.2)].sum()
    assert inside > 0.98 * power[1:].sum()


def test_schroeder_phases_halve_the_peak_of_in_phase_tones() -> None:
    tones = 24
    turns = np.outer(np.arange(4800) / 4800, np.arange(1, tones + 1))
    wave = np.cos(2 * np.pi * turns + schroeder_phases(np.ones(tones))).sum(axis=1)
    crest = np.abs(wave).max() / np.sqrt(tones / 2)
    assert crest < 1.8  # in phase: sqrt(2 * 24) = 6.9; Schroeder's flat multisine: about 1.7


def test_schroeder_phases_of_equal_tones_are_those_of_the_formula() -> None:
    k = np.arange(1, 9)
    assert schroeder_phases(np.ones(8)) == pytest.approx(-np.pi * k * (k - 1) / 8)


def test_square_ladder_rests_at_its_levels() -> None:
    spec = SPECS["go2"]
    cfg = ExcitationCfg(kind="square_ladder", joints=("FL_hip_joint",), seconds=30.0)
    plan = excite(spec, cfg)
    resting = np.abs(plan.velocity()[:, 0]) < 1e-9
    assert resting.mean() > 0.5


def test_ladder_plays_every_amplitude() -> None:
    spec = SPECS["pendulum"]
    wave = WaveCfg(ladder_amplitudes=(0.25, 0.5, 1.0), ladder_hz=(0.5,))
    cfg = ExcitationCfg(kind="sine_ladder", seconds=24.5, wave=wave, limits=LimitCfg(amplitude_rad=0.4))
    x = np.abs(excite(spec, cfg).target_pos[:, 0])
    peaks = [part.max() for part in np.array_split(x[50:-50], 3)]
    assert peaks == pytest.approx([0.1, 0.2, 0.4], rel=0.05)


def test_velocity_targets_are_the_derivative_when_asked_for() -> None:
    plan = excite(SPECS["z1"], ExcitationCfg(seconds=6.0, with_velocity=True))
    assert plan.target_vel is not None
    by_hand = (plan.target_pos[2:] - plan.target_pos[:-2]) / (2 * plan.dt)
    assert plan.target_vel[1:-1] == pytest.approx(by_hand)
    assert excite(SPECS["z1"], ExcitationCfg(seconds=6.0)).target_vel is None


def test_a_joint_without_room_stays() -> None:
    spec = SPECS["so101"]
    jaw = spec.joints[-1]
    stuck = msgspec.structs.replace(
        spec, joints=(*spec.joints[:-1], msgspec.structs.replace(jaw, default=jaw.position[1]))
    )
    for kind in KINDS:
        plan = excite(stuck, ExcitationCfg(kind=kind, seconds=25.0))
        assert (plan.target_pos[:, -1] == jaw.position[1]).all()
        assert_safe(stuck, plan, LimitCfg())


def test_the_config_is_kept_as_plain_values() -> None:
    cfg = ExcitationCfg(seconds=5.0, seed=3, joints=("joint1",))
    meta = excite(SPECS["z1"], cfg).meta
    assert msgspec.json.decode(msgspec.json.encode(meta)) == meta
    assert msgspec.convert(meta["config"], ExcitationCfg) == cfg


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joints": ("FL_hip",)}, "did you mean 'FL_hip_joint'"),
        ({"kind": "multisin"}, "did you mean 'multisine'"),
        ({"seconds": 10.0, "order": "one_by_one"}, "at least 28 s"),
        ({"seconds": 5.0, "kind": "sine_ladder"}, "ask for 19 s"),
        ({"rate_hz": 50.0}, "rate of 50 Hz is too low"),
        ({"seconds": float("inf")}, "seconds must be positive"),
        ({"seconds": 1e9}, "rows"),
    ],
)
def test_impossible_requests_say_what_to_do(change: dict[str, object], words: str) -> None:
    with pytest.raises(TrueupError, match=words):
        excite(SPECS["go2"], ExcitationCfg(**change))  # type: ignore[arg-type]


def test_the_seconds_an_error_asks_for_are_enough() -> None:
    excite(SPECS["go2"], ExcitationCfg(seconds=28.0, order="one_by_one"))
    excite(SPECS["go2"], ExcitationCfg(seconds=19.5, kind="sine_ladder"))


# --- moves and plans ---


@given(distance=st.floats(1e-6, 10.0), speed=st.floats(0.01, 50.0), acceleration=st.floats(0.01, 1000.0))
def test_move_time_and_distance_are_inverse(distance: float, speed: float, acceleration: float) -> None:
    seconds = move_time(distance, speed, acceleration)
    assert move_distance(seconds, speed, acceleration) == pytest.approx(distance)
    t = np.linspace(0.0, float(seconds), 2001)
    x = distance * min_jerk(t / seconds)
    assert np.abs(np.diff(x)).max() / t[1] <= speed * (1 + 1e-6)
    assert np.abs(np.diff(x, n=2)).max() / t[1] ** 2 <= acceleration * (1 + 1e-5)


@settings(max_examples=40, deadline=None)
@given(robot=st.sampled_from(sorted(SPECS)), seed=st.integers(0, 10**6), fraction=st.floats(0.02, 0.5))
def test_a_move_goes_from_pose_to_pose_within_limits(robot: str, seed: int, fraction: float) -> None:
    spec = SPECS[robot]
    rng = np.random.default_rng(seed)
    start, end = rng.uniform(spec.position_low, spec.position_high, (2, spec.njoint))
    plan = move_plan(spec, start, end, rate_hz=100.0, velocity_fraction=fraction)
    assert plan is not None
    assert plan.target_pos[0] == pytest.approx(start, abs=1e-12)
    assert plan.target_pos[-2:] == pytest.approx(np.stack([end, end]), abs=1e-12)
    assert (np.abs(plan.velocity()) <= fraction * spec.velocity_limit * (1 + 1e-9)).all()


def test_no_move_is_needed_where_one_already_is() -> None:
    spec = SPECS["go2"]
    assert move_plan(spec, spec.default_pose, spec.default_pose, rate_hz=100.0) is None


@settings(max_examples=20, deadline=None)
@given(scale=st.floats(0.0, 1.0))
def test_a_scaled_plan_moves_in_proportion(scale: float) -> None:
    spec = SPECS["so101"]
    plan = excite(spec, ExcitationCfg(seconds=3.0, with_velocity=True))
    smaller = scale_plan(plan, spec.default_pose, scale)
    moved = plan.target_pos - spec.default_pose
    assert smaller.target_pos - spec.default_pose == pytest.approx(scale * moved, abs=1e-12)
    assert smaller.target_vel == pytest.approx(scale * np.asarray(plan.target_vel), abs=1e-12)


def test_joined_plans_keep_their_order_and_rate() -> None:
    spec = SPECS["pendulum"]
    plan = excite(spec, ExcitationCfg(seconds=3.0))
    way = move_plan(spec, np.array([1.0]), spec.default_pose, rate_hz=200.0)
    assert way is not None
    whole = join_plans(way, plan, None)
    assert len(whole) == len(way) + len(plan)
    assert whole.target_pos[0] == pytest.approx(1.0)
    assert np.diff(whole.time) == pytest.approx(0.005)
    with pytest.raises(TrueupError, match="different rates"):
        join_plans(plan, excite(spec, ExcitationCfg(seconds=3.0, rate_hz=100.0)))


def test_a_plan_that_is_not_finite_names_joint_and_row() -> None:
    target = np.zeros((10, 2))
    target[4, 1] = np.nan
    with pytest.raises(TrueupError, match="row 4 of joint 'b'"):
        Plan(time=np.arange(10) / 10, joint_names=("a", "b"), target_pos=target)


def test_amplitude_of_a_sine_by_hand() -> None:
    bounds = Bounds(amplitude=0.5, velocity=2.0, acceleration=40.0)
    hz = np.array([0.1, 1.0, 10.0])
    by_hand = [0.5, 2.0 / (2 * np.pi), 40.0 / (20 * np.pi) ** 2]
    assert bounds.at(hz) == pytest.approx(by_hand)


def test_stiff_servos_are_commanded_faster_by_default() -> None:
    rates = {name: sensible_rate_hz(load_robot(name).spec) for name in ("go2", "so101", "pendulum")}
    assert rates == {"go2": 200.0, "so101": 200.0, "pendulum": 200.0}
    arm = load_robot("so101").spec
    joints = tuple(msgspec.structs.replace(joint, kp=998.22, torque=2.94) for joint in arm.joints)
    assert sensible_rate_hz(msgspec.structs.replace(arm, joints=joints)) == 400.0


def test_squats_lower_the_trunk_over_feet_that_stay_in_place():
    robot = load_robot("go2")
    plan = squat(robot, ExcitationCfg(kind="squat", seconds=9.0, limits=LimitCfg(amplitude_rad=0.8)))
    assert plan.seconds == pytest.approx(8.0)  # whole squats only
    np.testing.assert_allclose(plan.target_pos[[0, -1]], [robot.spec.default_pose] * 2, atol=1e-6)
    model = compile_model(robot, ModelCfg(base="fixed"))
    data, index = mujoco.MjData(model), joint_index(model, robot)
    feet = []
    for pose in plan.target_pos[:: len(plan) // 16]:
        data.qpos[index.qpos] = pose
        mujoco.mj_kinematics(model, data)
        feet.append(data.geom_xpos[[model.geom(name).id for name in robot.spec.feet]].copy())
    away = np.array(feet) - feet[0]
    assert np.abs(away[..., :2]).max() < 0.002
    assert np.ptp(away[..., 2], axis=1).max() < 0.002  # the trunk stays level
    assert away[..., 2].max() == pytest.approx(plan.meta["depth_m"], abs=0.002)
    assert plan.meta["depth_m"] > 0.05


def test_a_squat_needs_feet_and_time_for_two():
    with pytest.raises(TrueupError, match="feet"):
        squat(load_robot("so101"), ExcitationCfg(kind="squat"))
    with pytest.raises(TrueupError, match="two are needed"):
        squat(load_robot("go2"), ExcitationCfg(kind="squat", seconds=5.0))


def test_gains_for_squats_hold_the_robot_s_own_weight():
    robot = load_robot("go2")
    stiff = stiffened(robot)
    assert stiff.spec.kp.max() > 2.0 * robot.spec.kp.max()
    np.testing.assert_allclose(stiff.spec.kd / robot.spec.kd, np.sqrt(stiff.spec.kp / robot.spec.kp))
