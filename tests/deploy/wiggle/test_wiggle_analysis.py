"""From measured numbers to findings: answers, stops, torques, start pose and IMU, with numbers made by hand."""

import numpy as np
import pytest

from trueup.deploy.wiggle.analysis.answers import answer_findings
from trueup.deploy.wiggle.analysis.conclude import conclude, outside_findings
from trueup.deploy.wiggle.analysis.gravity import GravityTest
from trueup.deploy.wiggle.analysis.imu import gravity_in_base, imu_findings
from trueup.deploy.wiggle.analysis.limb_model import read_limbs
from trueup.deploy.wiggle.analysis.mistakes import no_mistake, shifted, single_mistakes, stop_offset
from trueup.deploy.wiggle.cfg import WiggleCfg
from trueup.deploy.wiggle.motion.trace import Touch, Trace, WiggleAnswer
from trueup.robot.load import load_robot

GO2, CFG = load_robot("go2"), WiggleCfg()
SPEC, LIMBS = GO2.spec, read_limbs(GO2)
LOW, HIGH = SPEC.position_low, SPEC.position_high
POSE = SPEC.default_pose


def new_trace() -> Trace:
    return Trace(start=POSE.copy(), rest=POSE.copy())


def answered(**who: tuple[str, float]) -> Trace:
    """Every joint answers itself, apart from those named: joint=(who answers, how far)."""
    trace = new_trace()
    for j, name in enumerate(SPEC.joint_names):
        other, moved = who.get(name.removesuffix("_joint"), (name.removesuffix("_joint"), 0.16))
        change = np.zeros(12)
        change[SPEC.joint_names.index(f"{other}_joint")] = moved
        trace.answers[j] = WiggleAnswer(change, 0.2, 2)
    return trace


def free() -> dict[int, dict[str, Touch]]:
    """Every joint arrives at both limits."""
    return {j: {"low": Touch(LOW[j] + 0.01, False), "high": Touch(HIGH[j] - 0.01, False)} for j in range(12)}


# --- answers ---
def test_joints_that_answer_themselves_are_right():
    assert answer_findings(SPEC, answered()) == []


def test_swapped_joints_are_named_once():
    (found,) = answer_findings(SPEC, answered(FL_hip=("RR_calf", 0.15), RR_calf=("FL_hip", 0.12)))
    assert (found.kind, found.joints) == ("swap", ("FL_hip_joint", "RR_calf_joint"))
    assert "the other way round" in found.text


def test_a_neighbour_that_swapped_joints_move_along_is_not_blamed():
    trace = answered(FL_thigh=("FR_thigh", 0.15), FR_thigh=("FL_thigh", 0.12), FL_calf=("FR_thigh", 0.1))
    assert [found.joints for found in answer_findings(SPEC, trace)] == [("FL_thigh_joint", "FR_thigh_joint")]


def test_a_joint_that_moves_against_its_command_is_named():
    (found,) = answer_findings(SPEC, answered(RL_thigh=("RL_thigh", -0.15)))
    assert (found.kind, found.joints) == ("sign", ("RL_thigh_joint",))


def test_a_joint_that_does_not_answer_is_dead():
    (found,) = answer_findings(SPEC, answered(FR_calf=("FR_calf", 0.01)))
    assert (found.kind, found.joints) == ("dead", ("FR_calf_joint",))


def test_joints_that_left_their_place_and_answer_rightly_have_another_zero():
    trace = new_trace()
    trace.departed = np.zeros(12)
    trace.departed[4] = -0.13
    trace.pulses = answered().answers
    (found,) = answer_findings(SPEC, trace)
    assert (found.kind, found.joints) == ("offset", ("FR_thigh_joint",))
    assert answer_findings(SPEC, trace, settled=False) == []


# --- stops ---
@pytest.mark.parametrize(
    ("low", "high", "offset"),
    [
        ((0.01, False), (0.01, False), 0.0),
        ((0.15, True), (0.01, False), 0.15),
        ((0.01, False), (0.3, True), -0.3),
        ((0.07, True), (0.07, True), 0.0),  # stops nearer than the figures say, on both sides
        ((0.16, True), (0.06, True), 0.05),
        ((0.03, True), (0.0, True), 0.03),
    ],
)
def test_offsets_follow_from_stops_met_early(low, high, offset):
    ends = {"low": Touch(LOW[2] + low[0], low[1]), "high": Touch(HIGH[2] - high[0], high[1])}
    assert stop_offset(SPEC, 2, ends) == pytest.approx(offset, abs=1e-9)


def test_no_offset_is_told_where_weight_or_friction_may_have_held_the_joint():
    ends = {"low": Touch(LOW[2] + 0.5, True, False), "high": Touch(HIGH[2], False)}
    assert stop_offset(SPEC, 2, ends) is None
    assert stop_offset(SPEC, 2, {"low": Touch(0.0, True)}) is None


def test_a_swap_of_front_and_rear_thigh_moves_their_stops():
    none, stops = no_mistake(SPEC), free()
    swap = next(h for h in single_mistakes(SPEC) if h.joints == (1, 7))
    assert none.agrees(SPEC, stops)
    assert not swap.agrees(SPEC, stops)
    stops[1] = {"low": Touch(-0.52, True), "high": Touch(HIGH[1], False)}  # the rear thigh's low stop
    stops[7] = {"low": Touch(LOW[7], False), "high": Touch(3.49, True)}
    assert swap.agrees(SPEC, stops)
    assert not none.agrees(SPEC, stops)


def test_every_pair_and_every_sign_is_a_hypothesis():
    kinds = [mistake.kind for mistake in single_mistakes(SPEC)]
    assert kinds.count("swap") == 66
    assert kinds.count("sign") == 12


# --- torques ---
def swept(mistake, *, scale: float = 1.0, friction: float = 0.5, noise: float = 0.2) -> Trace:
    """Torques along sweeps in two poses of a robot with a mistake, from the static model itself."""
    trace, random = new_trace(), np.random.default_rng(1)
    for base in (
        POSE,
        POSE + np.tile([0.0, 0.6, -0.5] + [0.0] * 3, 2),
        POSE + np.tile([0.0] * 3 + [0.0, 0.6, -0.5], 2),
    ):
        for j in range(12):
            q = np.tile(base, (60, 1))
            q[:, j] += np.linspace(-0.4, 0.4, 60)
            torque = scale * mistake.torque(LIMBS, q, np.array([0, 0, -9.81]))[:, j]
            for side in (1.0, -1.0):
                for row, tau in zip(q, torque + side * friction + noise * random.standard_normal(60), strict=True):
                    trace.add_row(row, j, side, float(tau))
    trace.stops = free()
    return trace


@pytest.mark.medium
def test_weights_are_zero_without_a_mistake_and_one_with_it():
    swaps = {h.joints: h for h in single_mistakes(SPEC)}
    down = np.array([0.0, 0.0, -9.81])
    for joints in ((0, 3), (1, 4), (5, 8), (0,), (9,)):
        clean = GravityTest(SPEC, LIMBS, swept(no_mistake(SPEC), scale=0.85).rows(), down).weigh(swaps[joints])
        wrong = GravityTest(SPEC, LIMBS, swept(swaps[joints], scale=0.85).rows(), down).weigh(swaps[joints])
        assert clean.testable
        assert abs(clean.alpha) < 0.3
        assert wrong.alpha > 0.7


def test_friction_and_scale_are_measured_along_the_way():
    fits = GravityTest(SPEC, LIMBS, swept(no_mistake(SPEC), scale=1.1).rows(), np.array([0, 0, -9.81])).fits
    assert fits[0].friction == pytest.approx(0.5, abs=0.05)
    assert fits[0].scale == pytest.approx(1.1, abs=0.1)


def test_a_mirrored_vertical_axis_cannot_be_seen_and_is_said():
    robot = load_robot("so101")
    limbs, spec = read_limbs(robot), robot.spec
    trace = Trace(start=spec.default_pose, rest=spec.default_pose)
    for j in range(6):
        q = np.tile(spec.default_pose, (80, 1))
        q[:, j] += np.linspace(-0.4, 0.4, 80)
        torque = limbs.gravity_torque(q, np.array([0, 0, -9.81]))[:, j]
        for side in (1.0, -1.0):
            for row, tau in zip(q, torque + 0.1 * side, strict=True):
                trace.add_row(row, j, side, float(tau))
        low, high = spec.joints[j].position
        trace.stops[j] = {"low": Touch(low, False), "high": Touch(high, False)}
    said = conclude(spec, limbs, trace, CFG)
    assert not said.findings
    assert any("sign of shoulder_pan" in text for text in said.unseen)
    assert not any("shoulder_lift" in text for text in said.unseen)


# --- together ---
def test_a_consistent_swap_is_concluded_from_torques():
    swap = next(h for h in single_mistakes(SPEC) if h.joints == (2, 5))
    (found,) = conclude(SPEC, LIMBS, swept(swap), CFG).findings
    assert (found.kind, found.joints) == ("swap", ("FL_calf_joint", "FR_calf_joint"))


@pytest.mark.medium
def test_a_very_early_stop_is_an_offset_unless_torques_say_that_something_was_in_the_way():
    trace = swept(shifted(SPEC, 1, 0.5), noise=0.02)
    trace.stops[1] = {"low": Touch(LOW[1] + 0.5, True), "high": Touch(HIGH[1], False)}
    (found,) = conclude(SPEC, LIMBS, trace, CFG).findings
    assert (found.kind, found.joints, found.value) == ("offset", ("FL_thigh_joint",), pytest.approx(0.5))
    trace = swept(no_mistake(SPEC), noise=0.02)
    trace.stops[1] = {"low": Touch(LOW[1] + 0.5, True), "high": Touch(HIGH[1], False)}
    said = conclude(SPEC, LIMBS, trace, CFG)
    assert not said.findings
    assert "was something in the way" in said.notes[0]


def test_offsets_below_three_quarters_of_the_threshold_are_no_alarm():
    trace = swept(no_mistake(SPEC))
    trace.stops[5] = {"low": Touch(LOW[5] + 0.07, True), "high": Touch(HIGH[5], False)}
    assert not conclude(SPEC, LIMBS, trace, CFG).findings
    trace.stops[5] = {"low": Touch(LOW[5] + 0.08, True), "high": Touch(HIGH[5], False)}
    assert [f.kind for f in conclude(SPEC, LIMBS, trace, CFG).findings] == ["offset"]


def test_without_sweeps_it_is_said_what_was_not_looked_for():
    said = conclude(SPEC, LIMBS, answered(), CFG)
    assert not said.findings
    assert "offsets" in said.notes[0]


# --- start pose ---
def test_readings_that_joints_cannot_have_are_found_before_anything_moves():
    assert outside_findings(SPEC, POSE) == []
    swapped = POSE.copy()
    swapped[[0, 8]] = POSE[[8, 0]]
    (found,) = outside_findings(SPEC, swapped)
    assert (found.kind, found.joints) == ("swap", ("FL_hip_joint", "RL_calf_joint"))
    mirrored = POSE.copy()
    mirrored[2] = 1.5
    (found,) = outside_findings(SPEC, mirrored)
    assert (found.kind, found.joints) == ("sign", ("FL_calf_joint",))
    mirrored[[1, 2]] = -1.0, 0.9  # its own sign, or the thigh's reading
    (found,) = outside_findings(SPEC, mirrored)
    assert (found.kind, found.joints) == ("outside", ("FL_calf_joint",))
    assert "the sign of FL_calf_joint" in found.text
    assert "FL_thigh_joint and FL_calf_joint swapped" in found.text
    assert "FR_thigh_joint and FL_calf_joint" not in found.text  # that thigh reads what no calf can
    broken = POSE.copy()
    broken[3] = np.nan
    assert outside_findings(SPEC, broken)[0].joints == ("FR_hip_joint",)


# --- IMU ---
def with_imu(quat, acc) -> Trace:
    trace = new_trace()
    trace.imu = [(np.array(quat, float), np.array(acc, float))] * 5
    return trace


def test_a_level_imu_is_right_and_tells_where_down_is():
    trace = with_imu([1, 0, 0, 0], [0.1, 0, 9.8])
    assert imu_findings(trace, LIMBS, CFG) == []
    np.testing.assert_allclose(gravity_in_base(trace, LIMBS), [-0.1, 0, -9.81], atol=0.01)
    assert imu_findings(new_trace(), LIMBS, CFG) == []


@pytest.mark.parametrize(
    ("quat", "acc", "words"),
    [
        ([1, 0, 0, 0], [0, 0, 1.0], "unit or scale"),
        ([0.92388, 0.38268, 0, 0], [0, 0, 9.81], "disagree"),
        ([0, 1, 0, 0], [0, 0, -9.81], "mounted otherwise"),
        ([0, 0, 0, 0], [0, 0, 9.81], "length 0.000"),
        ([1, 0, 0, 0], [np.nan, 0, 9.81], "not finite"),
    ],
)
def test_imu_mistakes_are_found(quat, acc, words):
    found = imu_findings(with_imu(quat, acc), LIMBS, CFG)
    assert [finding.kind for finding in found] == ["imu"]
    assert words in found[0].text
