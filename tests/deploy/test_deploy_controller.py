"""Controller: the numbers of training from the state of a robot, reproducible, and equal to the evaluation loop."""

import numpy as np
import pytest
from made_bundles import ACTION, JOINTS, OBSERVATION, make_net, make_passport
from made_deploys import changed, standing_bundle, toy_bundle, toy_spec, toy_state, wide_ranges

from trueup.core.errors import TrueupError
from trueup.deploy.control.controller import (
    ControlCfg,
    Controller,
    PolicyError,
    bundle_target_reach,
    bundle_target_step,
)
from trueup.policy.bundle.bundle import write_bundle
from trueup.policy.bundle.passport import term_facts
from trueup.policy.cycle import CycleSpec
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.observation import Term
from trueup.policy.reading import gravity_in_body

NAMES = toy_spec().joint_names
ASKED = np.array([0.5, 0.0, -0.2], np.float32)
UNBOUND = ControlCfg(target_step=np.inf)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return toy_bundle(tmp_path_factory.mktemp("toy") / "toy.bundle")


def steps(controller, count=6, **changes):
    return [controller.step(toy_state(k, **changes), ASKED) for k in range(count)]


def test_the_observation_is_the_one_of_the_spec_by_hand(bundle):
    state = toy_state()
    step = Controller(bundle, NAMES, UNBOUND).step(state, ASKED)
    pos, vel = (dict(zip(NAMES, values, strict=True)) for values in (state.joint_pos, state.joint_vel))
    frame = [
        *(0.25 * np.clip(state.imu_gyro, -2, 2)),
        *gravity_in_body(state.imu_quat[None])[0],
        *(ASKED * (2.0, 2.0, 0.25)),
        *(pos[name] - pose for name, pose in zip(JOINTS, OBSERVATION.default_pose, strict=True)),
        *(0.05 * vel[name] for name in JOINTS),
        *(0.0,) * 3,
    ]
    assert step.observation == pytest.approx(np.tile(frame, 2), abs=1e-6)  # the past is filled with the present


def test_the_target_is_the_default_pose_plus_the_scaled_action(bundle):
    step = Controller(bundle, NAMES, UNBOUND).step(toy_state(), ASKED)
    by_name = dict(zip(JOINTS, np.clip(ACTION.default_pose + 0.25 * step.raw.astype(float), -1, 1), strict=True))
    assert step.target == pytest.approx([by_name[name] for name in NAMES], abs=1e-12)


def test_joints_may_stand_in_any_order_on_the_robot(bundle):
    other = ("knee", "ankle", "hip")
    one = steps(Controller(bundle, NAMES, UNBOUND))
    two = steps(Controller(bundle, other, UNBOUND), names=other)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.raw, b.raw)
        assert dict(zip(NAMES, a.target, strict=True)) == dict(zip(other, b.target, strict=True))


@pytest.mark.parametrize("kind", ["plain", "latent", "action"])
def test_a_restart_forgets_everything(tmp_path, kind):
    controller = Controller(toy_bundle(tmp_path / "b", kind), NAMES, ControlCfg(smoothing=0.3))
    first = steps(controller)
    assert not np.array_equal(first[5].raw, controller.step(toy_state(5), ASKED).raw)  # it does remember
    controller.restart()
    for a, b in zip(first, steps(controller), strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_smoothing_mixes_actions_but_the_policy_observes_its_own(bundle):
    raw = steps(Controller(bundle, NAMES, UNBOUND))
    smooth = steps(Controller(bundle, NAMES, ControlCfg(smoothing=0.3, target_step=np.inf)))
    assert np.array_equal(smooth[0].raw, raw[0].raw)
    assert smooth[0].smoothed == pytest.approx(0.3 * raw[0].raw, abs=1e-7)
    assert smooth[1].smoothed == pytest.approx(0.3 * smooth[1].raw + 0.7 * smooth[0].smoothed, abs=1e-7)
    assert smooth[1].observation[-3:] == pytest.approx(smooth[0].raw, abs=1e-7)  # not the smoothed one


def test_an_action_spec_that_observes_the_clipped_action_gets_it(tmp_path):
    policy = changed(make_passport().policy, action=changed(ACTION, clip=0.05, observe_clipped=True))
    controller = Controller(toy_bundle(tmp_path / "b", policy=policy), NAMES, UNBOUND)
    first, second = steps(controller, 2)
    assert np.abs(first.raw).max() > 0.05
    assert second.observation[-3:] == pytest.approx(np.clip(first.raw, -0.05, 0.05), abs=1e-7)


def test_targets_move_no_farther_than_the_bound_in_a_step(bundle):
    controller = Controller(bundle, NAMES, ControlCfg(target_step=0.01))
    before = np.array([0.3, 0.1, -0.4])
    controller.restart(before)
    for step in steps(controller):
        assert np.abs(step.target - before).max() <= 0.01 + 1e-12
        assert np.all((np.abs(step.wanted - before) > 0.01) | (step.target == step.wanted))
        before = step.target


def test_without_a_restart_target_the_bound_begins_at_the_measured_pose(bundle):
    state = toy_state()
    step = Controller(bundle, NAMES, ControlCfg(target_step=0.01)).step(state, ASKED)
    assert np.abs(step.target - state.joint_pos).max() <= 0.01 + 1e-12


def test_a_bundle_bounds_steps_by_what_its_actions_did_in_training(tmp_path):
    low, high = np.full(OBSERVATION.nactor, -10.0), np.full(OBSERVATION.nactor, 10.0)
    low[-3:], high[-3:] = (-1.0, -2.0, 0.0), (1.0, 3.0, 0.1)
    ranges = changed(wide_ranges(OBSERVATION.nactor), low=tuple(low.tolist()), high=tuple(high.tolist()))
    bound = bundle_target_step(toy_bundle(tmp_path / "b", ranges=ranges).passport)
    assert bound == pytest.approx([0.25 * 2.0, 0.25 * 5.0, 0.1])  # the last span is below the default of 0.1 rad


def test_a_bundle_knows_how_far_its_targets_went_in_training(tmp_path):
    low, high = np.full(OBSERVATION.nactor, -10.0), np.full(OBSERVATION.nactor, 10.0)
    low[-3:], high[-3:] = (-1.0, -2.0, 0.0), (1.0, 8.0, 0.4)
    ranges = changed(wide_ranges(OBSERVATION.nactor), minimum=tuple(low.tolist()), maximum=tuple(high.tolist()))
    found = bundle_target_reach(toy_bundle(tmp_path / "b", ranges=ranges).passport)
    assert found[0] == pytest.approx([0.1 - 0.25, -0.4 - 0.5, 0.3])
    assert found[1] == pytest.approx([0.1 + 0.25, -0.4 + 2.0, 0.4])
    assert bundle_target_reach(make_passport(ranges=None, ranges_missing="x")) is None


MARCH = CycleSpec(rows=((0.0, 0.6, 0.0), (-0.2, 0.4, 0.0), (0.1, 0.5, 0.0), (0.0, 0.5, 0.0)), full_at=0.1)
BEAT = changed(
    make_passport().policy,
    observation=changed(OBSERVATION, terms=(*OBSERVATION.terms, Term("clock")), clock_step=0.125),
    action=changed(ACTION, low=(), high=(), cycle=MARCH),
)


def beating(path):
    net = make_net(nobs=BEAT.observation.nactor)
    ranges = wide_ranges(BEAT.observation.nactor)
    passport = make_passport(net, policy=BEAT, ranges=ranges, terms=term_facts(BEAT.observation, {}))
    return write_bundle(path, passport, policy_onnx(net))


def test_a_cycle_widens_the_bound_and_the_reach(tmp_path):
    passport = beating(tmp_path / "b").passport
    plain = changed(passport, policy=changed(BEAT, action=changed(BEAT.action, cycle=None)))
    assert bundle_target_step(passport) - bundle_target_step(plain) == pytest.approx([0.3, 0.6, 0.0])
    wide, narrow = bundle_target_reach(passport), bundle_target_reach(plain)
    assert wide[0] - narrow[0] == pytest.approx([-0.2, 0.0, 0.0])
    assert wide[1] - narrow[1] == pytest.approx([0.1, 0.6, 0.0])


def test_clock_and_cycle_begin_with_the_policy_and_again_at_a_restart(tmp_path):
    controller = Controller(beating(tmp_path / "b"), JOINTS, UNBOUND)

    def gait(step):
        return step.target - (np.array(ACTION.default_pose) + 0.25 * step.raw)

    for _ in range(2):
        seen = [controller.step(toy_state(names=JOINTS), np.array([0.5, 0.0, 0.0], np.float32)) for _ in range(4)]
        np.testing.assert_allclose([step.observation[-2:] for step in seen[::2]], [[0, 1], [1, 0]], atol=1e-6)
        expected = [[0, 0.6, 0], [-0.1, 0.5, 0], [-0.2, 0.4, 0], [-0.05, 0.45, 0]]
        np.testing.assert_allclose([gait(step) for step in seen], expected, atol=1e-6)
        controller.restart()
    standing = controller.step(toy_state(names=JOINTS), np.zeros(3, np.float32))
    np.testing.assert_allclose(gait(standing), 0.0, atol=1e-6)


def test_a_bundle_that_never_ran_gets_a_tenth_of_a_radian(tmp_path):
    passport = toy_bundle(tmp_path / "b", ranges=None, ranges_missing="never ran").passport
    assert bundle_target_step(passport) == pytest.approx([0.1] * 3)


@pytest.mark.parametrize("name", ["joint_pos", "joint_vel", "imu_gyro", "imu_quat"])
def test_a_sensor_that_is_not_finite_is_named_and_nothing_is_computed(bundle, name):
    values = getattr(toy_state(), name).copy()
    values[1] = np.nan
    with pytest.raises(PolicyError, match="not finite"):
        Controller(bundle, NAMES).step(toy_state(**{name: values}), ASKED)


def test_a_robot_without_imu_is_refused_by_the_signal(bundle):
    with pytest.raises(TrueupError, match="'gyro'"):
        Controller(bundle, NAMES).step(toy_state(imu_quat=None, imu_gyro=None), ASKED)


@pytest.mark.parametrize("cfg", [{"smoothing": 0.0}, {"smoothing": 1.1}, {"target_step": 0.0}, {"target_step": -1.0}])
def test_settings_without_meaning_are_refused(cfg):
    with pytest.raises(TrueupError):
        ControlCfg(**cfg)


@pytest.mark.medium
def test_on_a_lockstep_twin_it_is_bit_for_bit_the_evaluation_loop(tmp_path):
    from trueup.hardware.drivers.open import open_driver
    from trueup.policy.action import JointOrder
    from trueup.robot.load import load_robot
    from trueup.tasks.evaluation.evaluate import evaluate
    from trueup.tasks.evaluation.worlds import DriverWorld
    from trueup.tasks.load import load_task

    bundle, robot, asked = standing_bundle(tmp_path / "b", noise=0.1), load_robot("go2"), [0.4, 0.0, 0.2]
    spec = bundle.passport.policy

    def connected():
        return open_driver("twin:mild?base=free&lockstep=1", robot, command_hz=50.0)

    task, written = load_task("go2-velocity"), []
    with connected() as driver:
        send = driver.write
        driver.write = lambda command: (written.append(command), send(command))[1]
        order = JointOrder(spec.action.joint_names, robot.spec.joint_names)
        kp, kd = (order.to_robot(np.array(gains)) for gains in (spec.kp, spec.kd))
        world, goal = DriverWorld(robot.spec, [driver], kp, kd, 0.02), _held(asked)
        evaluate(world, bundle.runner().act, spec, task, goal, 1.0)
    controller, targets = Controller(bundle, robot.spec.joint_names, UNBOUND), []
    with connected() as driver:
        for _ in range(50):
            step = controller.step(driver.read(), np.array(asked, np.float32))
            targets.append(step.target)
            driver.write(controller.command(step.target))
    assert np.array_equal(targets, [command.target_pos for command in written[:50]])  # then damping
    assert np.ptp(np.array(targets), axis=0).min() > 1e-3  # it does answer to what it sees
    assert np.array_equal(controller.kp, kp)


def _held(asked):
    class Held:
        values = np.array([asked], np.float32)
        age = np.zeros(1, np.float32)
        reset = advance = lambda self, *rows: None

    return Held()
