"""Active excitation: motions inside their bounds, information that adds up, a plan that says what it gains."""

from dataclasses import replace

import numpy as np
import pytest
from made_calibration import made_calibration

from trueup.calibrate.active.forecast import Forecaster, deviations, worth
from trueup.calibrate.active.motion import NUMBERS, MotionSpace, Populations
from trueup.calibrate.active.outlook import USUAL, Outlook
from trueup.calibrate.active.plan import ActiveCfg, ActivePlan, Expected, plan_active
from trueup.core.errors import TrueupError
from trueup.record.record import check_plan
from trueup.report.record import _verdict
from trueup.robot.excitation.limits import LimitCfg, joint_bounds
from trueup.robot.load import load_robot
from trueup.world.fitted.calibration import Misfit

ANKLE = load_robot("pendulum:load_mass=0.3,load_length=0.05")
NAMES = ("armature", "friction", "kp")
WEAK = {"armature": 0.3, "kp": 0.5}


def test_every_motion_stays_inside_its_bounds_and_begins_and_ends_at_rest():
    robot = load_robot("go2")
    bounds = joint_bounds(robot.spec, LimitCfg(), rate_hz=200.0)
    space = MotionSpace(pose=robot.spec.default_pose, bounds=bounds, rows=800, rate_hz=200.0)
    numbers = np.random.default_rng(0).normal(0.0, 3.0, (5, robot.spec.njoint, NUMBERS))
    away = space.targets(numbers) - robot.spec.default_pose
    for j, limit in enumerate(bounds):
        assert np.abs(away[..., j]).max() <= limit.amplitude * (1 + 1e-9)
        assert np.abs(np.diff(away[..., j], axis=1)).max() * 200 <= limit.velocity * (1 + 1e-9)
        assert np.abs(np.diff(away[..., j], n=2, axis=1)).max() * 200**2 <= limit.acceleration * (1 + 1e-6)
    assert np.abs(away[:, [0, -1]]).max() == 0.0
    assert np.abs(away).max() > 0.1


def test_each_limb_has_its_own_search():
    """Two limbs with different optima are found by costs that are told limb by limb."""
    limb, goal = np.array([0, 0, 1]), np.array([0.5, 0.5, -0.7])
    search = Populations(limb, 1, 8, seed=0)
    for _ in range(60):
        asked = search.ask()[..., 0]
        off = (asked - goal) ** 2
        search.tell(np.stack([off[:, :2].sum(axis=1), off[:, 2]], axis=1))
    np.testing.assert_allclose(search.best[:, 0], goal, atol=0.05)


def test_a_sample_is_worth_less_when_residuals_have_memory_or_structure():
    white = Misfit(noise=[1e-3], left=[1e-3], memory_s=[0.005])
    np.testing.assert_allclose(worth(white, 200.0), [1e-3])
    slow = Misfit(noise=[1e-3], left=[1e-3], memory_s=[0.02])
    np.testing.assert_allclose(worth(slow, 200.0), [2e-3])  # four samples tell what one does
    wrong = Misfit(noise=[1e-3], left=[3e-3], memory_s=[0.005])
    np.testing.assert_allclose(worth(wrong, 200.0), [3e-3])  # what is left over counts, not the noise alone


def test_standard_errors_after_information_by_hand():
    before = np.diag([1.0, 4.0])
    after = deviations(before, np.array([[3.0, 0.0], [0.0, 5.0]]))
    np.testing.assert_allclose(after, [0.5, 1 / 3])


@pytest.mark.medium
def test_the_information_of_a_motion_is_that_of_the_simulated_change():
    """Against two plain simulations: how much the trajectory moves with friction, in noises."""
    result = made_calibration(ANKLE, ("friction", "delay"), deviation={"friction": 0.01, "delay": 0.01})
    forecast = Forecaster(ANKLE, result, rate_hz=200.0, draws=1)
    time = np.arange(400) / 200
    target = (0.3 * np.sin(2 * np.pi * time) * np.minimum(1.0, time))[None, :, None]
    found = forecast(target)
    assert found.information.shape == (1, 1, 2, 2)
    assert found.joint_pos.shape == (1, 400, 1)
    other = made_calibration(ANKLE, ("friction", "delay"), x=0.31, deviation={"friction": 0.01, "delay": 0.01})
    moved = Forecaster(ANKLE, other, rate_hz=200.0, draws=1)(target).joint_pos
    both = ((moved - found.joint_pos) / 0.01 / 5e-4).ravel()  # friction and delay moved together
    assert both @ both == pytest.approx(found.information[0, 0].sum(), rel=0.05)


@pytest.mark.medium
def test_a_plan_shows_what_was_weak_inside_all_limits_and_says_what_it_gains():
    result = made_calibration(ANKLE, NAMES, x=-0.5, deviation=WEAK)
    cfg = ActiveCfg(seconds=8.5, segment_s=4.0, generations=4, population=6, draws=1)
    outlooks: list[Outlook] = []
    estimates: list[float] = []
    plan = plan_active(ANKLE, result, cfg, on_estimate=estimates.append, on_outlook=outlooks.append)
    (outlook,) = outlooks
    assert outlook.usual.keys() == set(USUAL)
    assert outlook.before == plan.before
    assert len(estimates) == 1
    assert 0.0 < estimates[0] < 120.0
    assert outlook.seconds == 8.5
    assert plan.gain == pytest.approx(min(plan.others.values()) / plan.after)
    check_plan(ANKLE.spec, plan.rehearsal.plan)
    assert plan.rehearsal.plan.meta["kind"] == "active"
    assert plan.rehearsal.plan.seconds <= cfg.seconds
    for end in (0, -1):
        np.testing.assert_allclose(plan.rehearsal.plan.target_pos[end], ANKLE.spec.default_pose)
    assert [entry.estimate.parameter.name for entry in plan.expected] == ["armature", "kp"]
    assert all(entry.after < entry.estimate.ratio for entry in plan.expected)
    assert plan.after < plan.before
    assert set(plan.others) == set(USUAL)
    again = plan_active(ANKLE, result, cfg)
    np.testing.assert_array_equal(again.rehearsal.plan.target_pos, plan.rehearsal.plan.target_pos)


@pytest.mark.medium
def test_a_plan_ends_as_soon_as_the_target_is_reached():
    result = made_calibration(ANKLE, NAMES, x=-0.5, deviation={"armature": 0.2})
    cfg = ActiveCfg(seconds=30.0, segment_s=4.0, generations=2, population=4, draws=1)
    plan = plan_active(ANKLE, result, cfg)
    assert plan.reached
    assert plan.rehearsal.plan.seconds < 10.0
    assert plan.seconds_needed is not None
    assert plan.seconds_needed <= plan.rehearsal.plan.seconds


@pytest.mark.parametrize(("after", "advised"), [(0.1, ""), (0.19, "chirp"), (0.3, "chirp")])
def test_a_motion_that_gains_little_names_the_usual_one(after: float, advised: str):
    plan = ActivePlan(
        rehearsal=None,  # type: ignore[arg-type]
        expected=(),
        reached=False,
        seconds_needed=None,
        before=0.5,
        after=after,
        others={"multisine": 0.25, "chirp": 0.2},
    )
    assert plan.advised == advised
    assert ("use --excitation chirp" in _verdict(plan)) == bool(advised)


def test_nothing_weak_is_nothing_to_record():
    with pytest.raises(TrueupError, match="nothing to record"):
        plan_active(ANKLE, made_calibration(ANKLE, NAMES))


def test_a_calibration_of_another_robot_is_refused():
    with pytest.raises(TrueupError, match="other joints"):
        plan_active(load_robot("so101"), made_calibration(ANKLE, NAMES, deviation=WEAK))


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(TrueupError, match="at least one segment"):
        ActiveCfg(seconds=3.0)
    with pytest.raises(TrueupError, match="population"):
        ActiveCfg(population=1)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"segment_s": 1.5}, "segments of 1.5 s"),
        ({"seconds": 4.0, "segment_s": 4.5}, "4 s were allowed"),
        ({"generations": 0}, "generations"),
        ({"draws": 0}, "draws"),
        ({"population": 3}, "population 4"),
        ({"target": 0.0}, "target between 0 and 1"),
        ({"target": 1.0}, "target between 0 and 1"),
    ],
)
def test_each_setting_that_cannot_work_is_named(settings, named):
    with pytest.raises(TrueupError, match=named):
        ActiveCfg(**settings)


def test_what_is_expected_is_said_in_the_parameter_s_unit_and_as_a_verdict():
    estimate = made_calibration(ANKLE, ("friction",), x=0.0, deviation={"friction": 0.5}).estimates[0]
    # identified: 1.96 standard errors of the logarithm, 1.2 widths each, within 5 %: below 0.021
    words = [Expected(estimate=estimate, after=after).word for after in (0.02, 0.59, 0.6, 0.9)]
    assert words == ["identified", "weak", "not visible", "not visible"]
    # on a logarithmic scale with offset 0.02 and width 1.2 a prior width is 1.2 (value + 0.02)
    expected = 0.5 * 1.2 * (estimate.value + 0.02)
    assert Expected(estimate=estimate, after=0.5).standard_error == pytest.approx(expected)


def test_a_plan_s_gain_is_over_the_best_of_the_usual_excitations():
    plan = ActivePlan(
        rehearsal=None, expected=(), reached=False, seconds_needed=None, before=0.8, after=0.2,
        others={"multisine": 0.5, "chirp": 0.4},
    )  # fmt: skip
    assert plan.gain == pytest.approx(2.0)
    assert replace(plan, others={}).gain == 1.0


def test_a_joint_that_may_not_move_stays_in_its_pose():
    robot = load_robot("so101")
    bounds = [
        replace(one, amplitude=0.0) if j == 2 else one
        for j, one in enumerate(joint_bounds(robot.spec, LimitCfg(), rate_hz=200.0))
    ]
    space = MotionSpace(pose=robot.spec.default_pose, bounds=bounds, rows=600, rate_hz=200.0)
    away = space.targets(np.ones((1, robot.spec.njoint, NUMBERS))) - robot.spec.default_pose
    assert np.ptp(away[0, :, 2]) == 0.0
    assert all(np.ptp(away[0, :, j]) > 0.0 for j in range(robot.spec.njoint) if j != 2)
