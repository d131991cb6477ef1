"""Session: ramp, policy and exit on a robot in this process, with every way to end, and damping at each."""

import os
import signal
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fake_driver import lost
from made_deploys import ToyDriver, toy_bundle, toy_spec

from trueup.deploy.control.controller import ControlCfg, Controller
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.control.monitors import MonitorCfg
from trueup.deploy.session.recording import RowsHeader, RowWriter, column_widths, read_rows
from trueup.deploy.session.session import DeploySession, DeploySessionCfg
from trueup.hardware.guard.trip import GuardTripped, Trip

SPEC = toy_spec()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return toy_bundle(tmp_path_factory.mktemp("toy") / "toy.bundle")


@pytest.fixture
def controller(bundle):
    return Controller(bundle, SPEC.joint_names, ControlCfg(target_step=0.05))


def run(controller, driver=None, controls=(), writer=None, live=None, **cfg):
    driver = driver or ToyDriver(SPEC)
    settings = {"seconds": 1.0, "ramp_s": 0.5, "rest_s": 0.2} | cfg
    goal = AskedGoal(controller.passport.goal)
    session = DeploySession(
        controller, driver, goal, DeploySessionCfg(**settings), controls=controls, writer=writer, live=live
    )
    return session.run(), driver


class Wish:
    """Controls that ask for something at a step."""

    def __init__(self, at, wish):
        self.at, self.wish, self.count = at, wish, 0

    def poll(self, goal):
        self.count += 1
        return self.wish if self.count >= self.at else ""


def test_a_run_ramps_acts_for_its_time_and_damps(controller):
    outcome, driver = run(controller, ToyDriver(SPEC, start=SPEC.default_pose + 0.3))
    assert (outcome.ended, outcome.reason, outcome.steps, outcome.seconds) == ("done", "", 50, 1.0)
    ramp = [command.target_pos for command in driver.written[:-50]]
    assert len(ramp) == 36 + 10  # 1.875 x 0.3 rad / 0.8 rad/s, at 50 Hz, and 0.2 s of rest
    assert np.abs(ramp[0] - SPEC.default_pose - 0.3).max() < 1e-3
    assert np.array_equal(ramp[-1], SPEC.default_pose)
    assert driver.calls[-1] == "damp"


def test_targets_never_jump_from_ramp_to_policy(controller):
    _, driver = run(controller)
    targets = np.array([command.target_pos for command in driver.written])
    assert np.abs(np.diff(targets, axis=0)).max() <= 0.05 + 1e-12


def test_the_policy_runs_under_its_own_gains_times_the_runs(controller):
    _, driver = run(controller, gain=0.2)
    assert driver.written[-1].kp == pytest.approx(0.2 * controller.kp)
    assert driver.written[-1].kd == pytest.approx(0.2 * controller.kd)
    assert max(command.kp.max() for command in driver.written) <= 0.2 * 2.0 * controller.kp.max() + 1e-9


def test_a_pose_that_is_not_reached_stops_before_the_policy(controller):
    outcome, driver = run(controller, ToyDriver(SPEC, start=SPEC.default_pose + 0.7, blocked=1))
    assert (outcome.ended, outcome.guard, outcome.steps) == ("tripped", "start pose", 0)
    assert "hip is at 0.800 rad after the ramp, the policy starts at 0.100" in outcome.reason
    assert driver.calls[-1] == "damp"


@pytest.mark.parametrize(("wish", "ended"), [("end", "done"), ("emergency stop by the space bar", "estop")])
def test_the_operator_ends_it_at_once(controller, wish, ended):
    outcome, driver = run(controller, controls=[Wish(60, wish)])
    assert outcome.ended == ended
    assert len(driver.written) == 60
    assert driver.calls[-1] == "damp"


def test_the_emergency_stop_works_during_the_ramp(controller):
    outcome, driver = run(controller, controls=[Wish(3, "stop")])
    assert (outcome.ended, outcome.steps, len(driver.written)) == ("estop", 0, 3)


def test_a_live_page_may_stop_it(controller):
    shown = []
    page = SimpleNamespace(stop_requested=True, show=lambda *parts: shown.append(parts))
    outcome, _ = run(controller, live=page)
    assert (outcome.ended, outcome.reason) == ("estop", "emergency stop on the live page")
    assert shown[0][4] == "ramp"


def test_a_driver_that_fails_ends_it_with_its_words(controller):
    outcome, driver = run(controller, ToyDriver(SPEC, on_write=lambda number: lost() if number == 60 else None))
    assert (outcome.ended, outcome.guard, outcome.reason) == ("tripped", "driver", "the robot does not answer")
    assert driver.calls[-1] == "damp"


def test_a_guard_that_trips_is_named(controller):
    def tripped(number):
        if number == 60:
            raise GuardTripped(Trip(guard="tilt", reason="leans by 70 deg", time_s=1.0))

    outcome, _ = run(controller, ToyDriver(SPEC, on_write=tripped))
    assert (outcome.ended, outcome.guard, outcome.reason) == ("tripped", "tilt", "leans by 70 deg")


def test_a_state_that_is_not_finite_ends_it_before_anything_is_sent(controller):
    def spoil(state):
        return replace(state, joint_vel=np.array([0.0, np.nan, 0.0])) if driver.written[58:] else state

    driver = ToyDriver(SPEC, spoil=spoil)
    outcome, _ = run(controller, driver)
    assert (outcome.ended, outcome.guard) == ("tripped", "policy")
    assert "joint_vel hip" in outcome.reason
    assert all(np.isfinite(command.target_pos).all() for command in driver.written)


def test_what_training_never_saw_trips_the_monitor(controller):
    def spoil(state):
        return replace(state, imu_gyro=np.array([0.0, 0.0, 300.0])) if driver.written[58:] else state

    driver = ToyDriver(SPEC, spoil=spoil)
    outcome, _ = run(controller, driver, monitors=MonitorCfg(distance=1.5, distance_s=0.1), seconds=3.0)
    assert outcome.ended == "done"  # the gyro term is clipped at 0.5: the monitor sees what the policy sees
    driver = ToyDriver(SPEC, spoil=lambda state: replace(state, joint_vel=state.joint_vel + 500.0))
    outcome, _ = run(controller, driver)
    assert (outcome.ended, outcome.guard) == ("tripped", "monitor")
    assert "joint_vel" in outcome.reason


def test_a_signal_ends_it_in_order(controller):
    driver = ToyDriver(SPEC, on_write=lambda n: signal.raise_signal(signal.SIGTERM) if n == 60 else None)
    outcome, driver = run(controller, driver)
    assert (outcome.ended, outcome.reason) == ("interrupted", "ended by a signal")
    assert len(driver.written) == 61
    assert driver.calls[-1] == "damp"


def test_an_error_of_the_program_damps_and_passes_through(controller):
    def broken(number):
        if number == 60:
            raise ZeroDivisionError

    driver = ToyDriver(SPEC, on_write=broken)
    with pytest.raises(ZeroDivisionError):
        run(controller, driver)
    assert driver.calls[-1] == "damp"


def test_sitting_down_stands_still_then_goes_to_the_pose_and_lets_the_stiffness_fade(controller):
    wishes = [Wish(60, "end")]
    outcome, driver = run(controller, controls=wishes, on_exit="sit", still_s=0.4, sit_s=0.5, ramp_gain=2.0)
    after = driver.written[60:]
    assert outcome.ended == "done"
    assert len(after) == 20 + 50 + 26  # standing still, a second back to the pose, fading to nothing
    still, back, down = after[:20], after[20:70], after[70:]
    assert {float(command.kp[0] / controller.kp[0]) for command in still} == {1.0}
    assert back[0].kp == pytest.approx(controller.kp, rel=0.1)  # it does not let go in between
    assert back[-1].kp == pytest.approx(2.0 * controller.kp)
    assert np.abs(back[-1].target_pos - SPEC.default_pose).max() < 1e-9
    kp = np.array([command.kp[0] for command in down])
    assert np.all(np.diff(kp) <= 0.0)
    assert kp[-1] == pytest.approx(0.0, abs=1e-9)
    assert down[-1].kd == pytest.approx(controller.kd)
    assert driver.calls == ["damp"]  # once, at the very end


@pytest.mark.parametrize("at", [65, 100, 150])  # standing still, going back to the pose, fading
def test_the_emergency_stop_works_while_it_sits_down(controller, at):
    wishes = [Wish(60, "end"), Wish(at, "emergency stop by the space bar")]
    outcome, driver = run(controller, controls=wishes, on_exit="sit", still_s=0.4, sit_s=0.5, ramp_gain=2.0)
    assert (outcome.ended, outcome.reason) == ("estop", "emergency stop by the space bar")
    assert len(driver.written) == at - 1
    assert driver.calls[-1] == "damp"


def test_a_guard_that_trips_while_it_sits_down_is_how_the_run_ended(controller):
    def trip(number):
        if number == 70:
            raise GuardTripped(Trip(guard="tilt", reason="it falls", time_s=0.0))

    wishes, toy = [Wish(60, "end")], ToyDriver(SPEC, on_write=trip)
    outcome, driver = run(controller, toy, controls=wishes, on_exit="sit", still_s=0.4, sit_s=0.5)
    assert (outcome.ended, outcome.guard, outcome.reason) == ("tripped", "tilt", "it falls")
    assert driver.calls[-1] == "damp"


def test_a_robot_that_sits_down_is_asked_for_nothing_more(controller):
    class Forward(Wish):
        def poll(self, goal):
            goal.nudge(goal.columns[0], 1)
            return super().poll(goal)

    asked, step = [], controller.step
    controller.step = lambda state, goal: (asked.append(np.array(goal)), step(state, goal))[1]
    run(controller, controls=[Forward(60, "end")], on_exit="sit", still_s=0.4, sit_s=0.5)
    assert len(asked) > 20
    assert np.all(np.array(asked[-20:]) == AskedGoal(controller.passport.goal).values)
    assert np.any(np.array(asked[:-20]) != AskedGoal(controller.passport.goal).values)


def test_after_a_trip_nobody_sits_down(controller):
    outcome, driver = run(controller, controls=[Wish(60, "stop")], on_exit="sit")
    assert outcome.ended == "estop"
    assert len(driver.written) == 60


def test_figures_of_a_run(controller):
    outcome, _ = run(controller)
    assert outcome.misses == 0
    assert outcome.tilt_rad == 0.0
    assert 0.0 < outcome.tracking < 0.2
    assert 0.0 < outcome.moved < 1.0
    assert 0.0 < outcome.distance_median <= outcome.distance_max < 3.0


@pytest.mark.medium
def test_in_real_time_the_schedule_is_absolute_and_a_slow_step_is_a_miss(controller):
    def slow(number):
        if number == 80:
            threading.Event().wait(0.05)

    outcome, _ = run(controller, ToyDriver(SPEC, realtime=True, on_write=slow))
    assert outcome.ended == "done"
    assert 1 <= outcome.misses <= 4
    assert outcome.loop.missed >= 2
    assert outcome.loop.seconds == pytest.approx((outcome.loop.ticks + outcome.loop.missed) * 0.02, abs=0.04)


def test_everything_is_recorded_and_the_sent_command_too(controller, bundle, tmp_path):
    spec = bundle.passport.policy
    header = RowsHeader(
        bundle=str(bundle.path), bundle_hash=bundle.hash, robot="toy", joint_names=SPEC.joint_names, control_hz=50.0,
        has_imu=True, settings={"target_step": 0.05}, columns=column_widths(3, 3, spec.observation.nactor, 3),
    )  # fmt: skip
    writer = RowWriter(tmp_path / "policy.rows", header)
    outcome, driver = run(controller, ToyDriver(SPEC, clamp=0.05), writer=writer)
    writer.close()
    found = read_rows(tmp_path / "policy.rows")
    phase = found.columns["phase"][:, 0]
    assert (np.sum(phase == 0), np.sum(phase == 1)) == (35, 50)
    assert found.columns["restart"][:, 0].tolist() == [0.0] * 35 + [1.0] + [0.0] * 49
    assert np.array_equal(found.columns["sent_pos"], [command.target_pos for command in driver.written])
    assert not np.array_equal(found.columns["sent_pos"][35:], found.columns["target"][35:])  # the driver's own limits
    assert np.isnan(found.columns["raw"][:35]).all()
    assert os.path.getsize(tmp_path / "policy.rows") > 80 * 8 * 100
    assert outcome.steps == 50


@pytest.mark.parametrize("cfg", [{"seconds": -1.0}, {"gain": 0.0}, {"gain": 1.5}])
def test_runs_without_meaning_are_refused(cfg):
    with pytest.raises(Exception, match="found"):
        DeploySessionCfg(**cfg)
