"""Shadow: looking on while another driver has a twin; nothing that moves it is sent."""

import threading
import time

import numpy as np
import pytest
from made_deploys import ToyDriver, standing_bundle, toy_bundle, toy_robot, toy_spec

from trueup.core.errors import TrueupError
from trueup.deploy.control.controller import Controller
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.ladder.shadow import listening_driver, observe, shadow
from trueup.hardware.driver import Command
from trueup.hardware.drivers.twin import TwinDriver
from trueup.hardware.drivers.twin_listener import TwinListener
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import load_robot


class Overheard(ToyDriver):
    """A robot that another commander moves: `observe` tells what it sends."""

    def observe(self):
        self.heard.append(super().write(self.others()))
        return self.read(), self.heard[-1]

    def write(self, command):
        raise AssertionError("nothing may be sent")

    damp = write


def test_the_same_policy_agrees_with_itself_exactly(tmp_path):
    bundle, robot = toy_bundle(tmp_path / "b"), toy_robot(tmp_path)
    mine, theirs = (Controller(bundle, robot.spec.joint_names) for _ in range(2))
    theirs.restart(theirs.default_pose)
    goal, driver = AskedGoal(bundle.passport.goal), Overheard(robot.spec)
    driver.observe = lambda: (state := driver.read(), theirs.command(theirs.step(state, goal.values).target))
    found = shadow(mine, driver, robot, goal, 1.0)
    assert (found.compared, found.agreement, found.outcome.ended, found.outcome.steps) == (50, 0.0, "done", 50)
    assert found.plausible == 1.0
    assert driver.written == []


def test_another_opinion_is_measured_joint_by_joint(tmp_path):
    bundle, robot = toy_bundle(tmp_path / "b"), toy_robot(tmp_path)
    mine = Controller(bundle, robot.spec.joint_names)
    goal, driver = AskedGoal(bundle.passport.goal), Overheard(robot.spec)
    driver.others = lambda: mine.command(mine.default_pose + np.array([0.5, 0.0, 0.0]))
    found = shadow(mine, driver, robot, goal, 1.0)
    assert found.compared == 50
    assert found.by_joint["ankle"] > 0.3
    assert found.agreement == pytest.approx(np.sqrt(np.mean(np.square(list(found.by_joint.values())))))


def test_without_a_commander_there_is_nothing_to_compare(tmp_path):
    bundle, robot = toy_bundle(tmp_path / "b"), toy_robot(tmp_path)
    driver = ToyDriver(robot.spec, realtime=True)
    found = shadow(Controller(bundle, robot.spec.joint_names), driver, robot, AskedGoal(bundle.passport.goal), 0.5)
    assert (found.compared, found.outcome.steps, driver.written, driver.calls) == (0, 25, [], [])
    assert np.isnan(found.agreement)
    assert np.isnan(found.correlation)


def test_a_robot_that_falls_silent_ends_it(tmp_path):
    bundle, robot = toy_bundle(tmp_path / "b"), toy_robot(tmp_path)

    def silent(state):
        if state.sequence > 3:
            raise TrueupError("the robot does not answer")
        return state

    driver = ToyDriver(robot.spec, realtime=True, spoil=silent)
    found = shadow(Controller(bundle, robot.spec.joint_names), driver, robot, AskedGoal(bundle.passport.goal), 5.0)
    assert (found.outcome.ended, found.outcome.guard, found.outcome.reason) == (
        "tripped", "driver", "the robot does not answer",
    )  # fmt: skip


def test_drivers_tell_state_and_command_together_or_the_command_alone():
    driver = ToyDriver(toy_spec(), realtime=True)
    assert observe(driver)[1] is None
    command = driver.damp()
    driver.observe = lambda: command
    assert observe(driver)[1] is command
    assert observe(driver)[0].joint_pos.shape == (3,)


# --- over the real socket ---
@pytest.fixture(scope="module")
def twin():
    """A pendulum's twin in real time that nobody has yet, and its robot."""
    robot = load_robot("pendulum")
    driver = TwinDriver(robot, ServeCfg(preset="ideal", command_hz=200.0), timeout_s=20.0)
    driver.connect()
    yield driver, robot
    driver.close()


def commanding(driver, robot, target, until, sent):
    """Send a command 100 times a second from another thread."""
    spec, zero = robot.spec, np.zeros(robot.spec.njoint)
    command = Command(target_pos=zero + target, target_vel=zero, kp=spec.kp, kd=spec.kd, torque=zero)

    def send():
        while not until.is_set():
            sent.append(driver.write(command))
            time.sleep(0.01)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


@pytest.mark.medium
def test_a_listener_hears_states_and_the_drivers_commands_and_sends_none(twin):
    driver, robot = twin
    address = driver._address
    before, until, sent = driver.tap(), threading.Event(), []
    thread = commanding(driver, robot, 0.25, until, sent)
    listener = TwinListener(robot, address)
    listener.connect()
    try:
        states, commands = [], []
        for _ in range(60):
            state, command = listener.observe()
            states.append(state.sequence)
            commands.append(command)
        with pytest.raises(TrueupError, match="only listens"):
            listener.write(commands[-1])
        with pytest.raises(TrueupError, match="only listens"):
            listener.damp()
    finally:
        until.set()
        thread.join()
        listener.close()
    assert listener.name == driver.name
    assert np.all(np.diff(states) > 0)
    assert commands[-1].target_pos == pytest.approx([0.25])
    after = driver.tap()
    assert after.commands - before.commands == len(sent)  # the driver's own, and no other
    assert after.bad_frames == before.bad_frames


@pytest.mark.medium
def test_a_command_that_is_in_force_no_more_is_not_told(twin):
    driver, robot = twin
    driver.damp()
    listener = TwinListener(robot, driver._address)
    listener.connect()
    time.sleep(0.7)
    assert listener.observe()[1] is None or listener.observe()[1].kp == pytest.approx([0.0])
    listener.close()


@pytest.mark.medium
def test_another_robots_twin_is_refused(twin):
    with pytest.raises(TrueupError, match="is another robot"):
        TwinListener(load_robot("z1"), twin[0]._address).connect()


def test_a_twin_that_is_not_there_is_silent():
    with pytest.raises(TrueupError, match="is silent"):
        TwinListener(load_robot("pendulum"), ("127.0.0.1", 9), timeout_s=0.2).connect()


def test_which_driver_listens():
    robot = load_robot("pendulum")
    assert isinstance(listening_driver("twin@127.0.0.1:7000", robot, 50.0), TwinListener)
    assert isinstance(listening_driver("twin:ideal", robot, 50.0), TwinDriver)
    with pytest.raises(TrueupError, match="HOST:PORT"):
        listening_driver("twin@nowhere", robot, 50.0)


@pytest.mark.parametrize("reference", ["unitree:lo", "unitree:lo?domain=7", "unitree:lo?listen=1"])
def test_a_driver_that_can_listen_is_told_to(reference):
    pytest.importorskip("cyclonedds")
    driver = listening_driver(reference, load_robot("go2"), 50.0)
    with pytest.raises(TrueupError, match="listens only"):
        driver.write(None)


@pytest.mark.medium
def test_the_shadow_of_a_go2_agrees_with_the_policy_that_runs_it(tmp_path):
    robot, bundle = load_robot("go2"), standing_bundle(tmp_path / "b", swing=0.2)
    goal = AskedGoal(bundle.passport.goal)
    goal.set(["forward=0.5"])
    until, ours = threading.Event(), Controller(bundle, robot.spec.joint_names)
    with TwinDriver(robot, ServeCfg(preset="ideal", base="free", command_hz=200.0), timeout_s=20.0) as driver:

        def run():
            while not until.is_set():
                driver.write(ours.command(ours.step(driver.read(), goal.values).target))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        listener = listening_driver(f"twin@{driver._address[0]}:{driver._address[1]}", robot, 50.0)
        listener.connect()
        time.sleep(0.3)
        found = shadow(Controller(bundle, robot.spec.joint_names), listener, robot, goal, 1.0)
        until.set()
        thread.join()
        listener.close()
    assert found.compared > 40
    assert found.agreement < 0.03  # both push the same way; the first step begins at the default pose
