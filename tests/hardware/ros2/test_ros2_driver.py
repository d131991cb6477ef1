from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from ros2_robot import Ros2Robot, free_domain

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.drivers.ros2.driver import Ros2Driver
from trueup.hardware.drivers.ros2.messages import Bool, Float64MultiArray, Imu, JointState, JointTrajectory, Quaternion
from trueup.robot.load import Robot, load_robot

Make = Callable[..., tuple[Ros2Robot, Ros2Driver]]
NAMES = ["gripper", "wrist_roll", "camera_pan", "wrist_flex", "elbow_flex", "shoulder_lift", "shoulder_pan"]
POSITION = [0.6, 0.5, 9.0, 0.4, 0.3, 0.2, 0.1]
IN_ORDER = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


@pytest.fixture(scope="module")
def so101() -> Robot:
    return load_robot("so101")


@pytest.fixture
def make(so101: Robot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A robot whose joints come in another order, with one that is not ours; and a driver, not yet connected."""
    monkeypatch.setattr("trueup.hardware.drivers.ros2.feed.FIRST_S", 0.3)  # less waiting for what never comes
    opened: list[Ros2Robot | Ros2Driver] = []

    def build(options: str = "", kind: type = JointState) -> tuple[Ros2Robot, Ros2Driver]:
        domain = free_domain()
        robot = Ros2Robot(domain, kind)
        robot.state = JointState(name=NAMES, position=POSITION, velocity=[-x for x in POSITION], effort=[])
        driver = open_driver(f"ros2:lo?domain={domain}{options}", so101, command_hz=50.0)
        assert isinstance(driver, Ros2Driver)
        opened.extend([driver, robot])
        return robot, driver

    yield build
    for thing in opened:
        thing.close()


def ask(robot: Robot, **changes: object) -> Command:
    zero = np.zeros(6)
    given = {"target_pos": zero, "target_vel": zero, "kp": robot.spec.kp, "kd": robot.spec.kd, "torque": zero}
    return Command(**(given | changes))  # type: ignore[arg-type]


def test_joints_are_matched_by_name_and_those_of_others_left_out(make: Make) -> None:
    _, driver = make()
    driver.connect()
    state = driver.read()
    assert state.joint_pos.tolist() == IN_ORDER
    assert state.joint_vel.tolist() == [-x for x in IN_ORDER]
    assert np.isnan(state.joint_torque).all()  # the message has no efforts
    assert np.isnan(state.joint_temperature).all()
    assert np.isnan(state.voltage)
    assert state.imu_quat is None


def test_states_carry_the_header_stamp_and_are_counted(make: Make) -> None:
    _, driver = make()
    driver.connect()
    first = driver.read()
    second = driver.read()
    assert 100.0 <= first.time_s < second.time_s
    # one state every 2 ms of stamps: as many as were counted
    assert second.sequence - first.sequence == round((second.time_s - first.time_s) / 0.002)


def test_missing_joint_is_refused_by_name(make: Make) -> None:
    robot, driver = make()
    robot.state = JointState(name=NAMES[1:], position=POSITION[1:], velocity=POSITION[1:])
    with pytest.raises(TrueupError, match="5 of 6 joints: gripper missing"):
        driver.connect()


def test_states_of_another_robot_alone_are_silence(make: Make) -> None:
    robot, driver = make("&timeout_s=0.1")
    robot.state = JointState(name=["camera_pan"], position=[0.0], velocity=[0.0])
    with pytest.raises(TrueupError, match="nothing comes on /joint_states"):
        driver.connect()


def test_silence_of_the_state_ends_in_an_error(make: Make) -> None:
    robot, driver = make("&timeout_s=0.2")
    driver.connect()
    robot.state = None
    time.sleep(0.05)
    driver.read()
    with pytest.raises(TrueupError, match=r"no state on /joint_states for 0.2 s"):
        driver.read()


def test_wrong_topic_names_the_topics_that_are_there(make: Make) -> None:
    _, driver = make("&state=/arm/joint_states&timeout_s=0.1")
    with pytest.raises(TrueupError, match=r"nothing comes on /arm/joint_states; topics here: /imu, /joint_states"):
        driver.connect()


def test_silent_imu_is_an_error_though_the_joints_report(make: Make) -> None:
    robot, driver = make("&imu=/imu")
    robot.imu = Imu(orientation=Quaternion(x=0.1, y=0.2, z=0.3, w=0.9))
    driver.connect()
    state = driver.read()
    assert state.imu_quat is not None
    assert state.imu_quat.tolist() == [0.9, 0.1, 0.2, 0.3]
    robot.imu = None
    time.sleep(0.25)
    with pytest.raises(TrueupError, match="the IMU on /imu has been silent"):
        driver.read()


def test_robot_that_paused_altogether_is_no_silent_imu(make: Make) -> None:
    robot, driver = make("&imu=/imu")
    imu = robot.imu = Imu()
    driver.connect()
    state, robot.state, robot.imu = robot.state, None, None
    time.sleep(0.3)
    robot.state = state
    threading.Timer(0.05, lambda: setattr(robot, "imu", imu)).start()  # joints first, then the IMU
    driver.read()


def test_robot_without_the_imu_that_was_asked_for_is_refused(make: Make) -> None:
    _, driver = make("&imu=/imu&timeout_s=0.1")
    with pytest.raises(TrueupError, match="nothing comes on /imu; it is published as sensor_msgs::msg::dds_::Imu_"):
        driver.connect()


def test_command_goes_out_as_joint_state_with_names(make: Make, so101: Robot) -> None:
    robot, driver = make()
    driver.connect()
    target, speed, torque = np.arange(6) / 10, np.arange(6) / 5, -np.arange(6.0)
    sent = driver.write(ask(so101, target_pos=target, target_vel=speed, torque=torque, kp=np.full(6, 99.0)))
    (message,) = robot.await_commands(1)
    assert message.name == list(so101.spec.joint_names)
    assert message.position == target.tolist() == sent.target_pos.tolist()
    assert message.velocity == speed.tolist() == sent.target_vel.tolist()
    assert message.effort == torque.tolist() == sent.torque.tolist()
    assert sent.kp.tolist() == so101.spec.kp.tolist()  # gains do not travel: the robot's own are in force
    assert not driver.sends_gains


def test_float64_command_is_positions_in_the_order_of_the_controller(make: Make, so101: Robot) -> None:
    order = "gripper,shoulder_pan,shoulder_lift,elbow_flex,wrist_flex,wrist_roll"
    robot, driver = make(f"&kind=float64&joints={order}", Float64MultiArray)
    driver.connect()
    sent = driver.write(ask(so101, target_pos=np.arange(6.0), target_vel=np.ones(6), torque=np.ones(6)))
    (message,) = robot.await_commands(1)
    assert message.data == [5.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    assert sent.target_pos.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert not sent.target_vel.any()  # neither velocity nor torque is in the message
    assert not sent.torque.any()


def test_trajectory_command_is_one_point_in_one_period(make: Make, so101: Robot) -> None:
    robot, driver = make("&kind=trajectory", JointTrajectory)
    driver.connect()
    driver.write(ask(so101, target_pos=np.arange(6.0)))
    (message,) = robot.await_commands(1)
    (point,) = message.points
    assert message.joint_names == list(so101.spec.joint_names)
    assert point.positions == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert (point.time_from_start.sec, point.time_from_start.nanosec) == (0, 20_000_000)
    assert point.velocities == []


def test_joint_without_stiffness_is_sent_where_it_is(make: Make, so101: Robot) -> None:
    """A damping command as other drivers send it (kp 0, target 0) must not drive the arm to zero."""
    robot, driver = make()
    driver.connect()
    kp = np.where(np.arange(6) < 2, 0.0, so101.spec.kp)
    sent = driver.write(ask(so101, kp=kp))
    (message,) = robot.await_commands(1)
    assert message.position == [0.1, 0.2, 0.0, 0.0, 0.0, 0.0] == sent.target_pos.tolist()


def test_damp_holds_the_position_of_its_first_call(make: Make) -> None:
    robot, driver = make()
    driver.connect()
    assert driver.damp().target_pos.tolist() == IN_ORDER
    robot.state = JointState(name=NAMES, position=[x + 1 for x in POSITION], velocity=POSITION)
    time.sleep(0.05)
    driver.damp()
    first, second = robot.await_commands(2)[:2]
    assert first.position == second.position == IN_ORDER
    assert first.velocity == first.effort == [0.0] * 6


def test_damp_that_follows_sends_the_measured_position_each_time(make: Make) -> None:
    robot, driver = make("&damp=follow")
    driver.connect()
    driver.damp()
    robot.state = JointState(name=NAMES, position=[2 * x for x in POSITION], velocity=POSITION)
    time.sleep(0.05)
    assert driver.damp().target_pos.tolist() == [2 * x for x in IN_ORDER]


def test_damp_topic_is_told(make: Make) -> None:
    robot, driver = make("&damp_topic=/stop")
    stops = robot.bus.inbox("/stop", Bool)
    driver.connect()
    assert not stops.take()
    driver.damp()
    assert stops.wait(3.0)
    assert [message.data for message in stops.take()] == [True]


@pytest.mark.parametrize("field", ["target_pos", "target_vel", "kp", "kd", "torque"])
def test_what_is_not_finite_is_refused_by_joint(make: Make, so101: Robot, field: str) -> None:
    robot, driver = make()
    driver.connect()
    bad = np.array([0.0, 0.0, np.nan, 0.0, 0.0, 0.0])
    with pytest.raises(TrueupError, match=f"{field} of joint 'elbow_flex' is not finite"):
        driver.write(ask(so101, **{field: bad}))
    assert not robot.await_commands(1, 0.1)


def test_nobody_listening_is_an_error(make: Make, so101: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.hardware.drivers.ros2.driver.MATCH_S", 0.1)
    _, driver = make("&command=/elsewhere")
    driver.connect()
    with pytest.raises(TrueupError, match="nobody listens to JointState messages on /elsewhere"):
        driver.write(ask(so101))


def test_nothing_is_sent_by_a_driver_that_only_reads(make: Make) -> None:
    robot, driver = make()
    driver.connect()
    driver.read()
    driver.close()
    driver.close()
    assert not robot.await_commands(1, 0.2)


def test_listening_driver_refuses_to_send(make: Make, so101: Robot) -> None:
    robot, driver = make("&listen=1&damp_topic=/stop")
    stops = robot.bus.inbox("/stop", Bool)
    driver.connect()
    for send in (lambda: driver.write(ask(so101)), driver.damp):
        with pytest.raises(TrueupError, match="listens only"):
            send()
    assert not robot.await_commands(1, 0.1)
    assert not stops.take()


def test_close_damps_after_a_command(make: Make, so101: Robot) -> None:
    robot, driver = make()
    driver.connect()
    driver.write(ask(so101))
    driver.close()
    assert robot.await_commands(2)[1].position == IN_ORDER
    with pytest.raises(TrueupError, match="not connected"):
        driver.read()


def test_another_commander_is_seen_and_observed(make: Make, so101: Robot) -> None:
    robot, driver = make()
    driver.connect()
    driver.write(ask(so101))
    robot.await_commands(1)
    assert driver.other_commander is None  # its own commands are not another's
    assert driver.observe()[1] is None
    other = robot.bus.outbox("/joint_commands", JointState)
    other.send(JointState(name=NAMES, position=POSITION))
    end = time.monotonic() + 3.0
    while driver.other_commander is None and time.monotonic() < end:
        time.sleep(0.01)
    assert "1 other publisher on /joint_commands" in str(driver.other_commander)
    state, seen = driver.observe()
    assert state.joint_pos.tolist() == IN_ORDER
    assert seen is not None
    assert seen.target_pos.tolist() == IN_ORDER
    assert not seen.target_vel.any()


def test_commander_that_fell_silent_is_forgotten(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.hardware.drivers.ros2.driver.RECENT_S", 0.2)
    robot, driver = make()
    driver.connect()
    other = robot.bus.outbox("/joint_commands", JointState)
    time.sleep(0.05)
    other.send(JointState(name=NAMES, position=POSITION))
    time.sleep(0.1)
    assert driver.observe()[1] is not None
    time.sleep(0.25)
    assert driver.other_commander is None


def test_states_stamped_zero_need_the_clock_of_arrival(make: Make) -> None:
    robot, driver = make()
    robot.stamps = False
    time.sleep(0.02)
    with pytest.raises(TrueupError, match=r"stamped 0 s; .*clock=arrival"):
        driver.connect()
    robot, driver = make("&clock=arrival")
    robot.stamps = False
    driver.connect()
    assert abs(driver.read().time_s - time.monotonic()) < 0.5
