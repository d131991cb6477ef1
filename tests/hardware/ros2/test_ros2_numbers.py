"""Options, names and numbers of the ROS 2 driver without a network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.ros2.commands import CommandFormat, CommandTargets
from trueup.hardware.drivers.ros2.messages import (
    Float64MultiArray,
    Header,
    Imu,
    JointState,
    JointTrajectory,
    JointTrajectoryPoint,
    Quaternion,
    Time,
    Vector3,
)
from trueup.hardware.drivers.ros2.options import Ros2Cfg, read_options, topic_on_wire
from trueup.hardware.drivers.ros2.states import NameOrder, StateReader, read_imu, split_seconds

NAMES = ("a", "b", "c")


def state(**fields: object) -> JointState:
    given = {"header": Header(Time(1, 500_000_000)), "name": ["b", "x", "c", "a"], "position": [2.0, 9.0, 3.0, 1.0]}
    return JointState(**(given | fields))  # type: ignore[arg-type]


def test_ros_topics_get_the_prefix_of_topics() -> None:
    assert topic_on_wire("/joint_states") == topic_on_wire("joint_states") == "rt/joint_states"
    assert topic_on_wire("/left/arm/joint_states") == "rt/left/arm/joint_states"


def test_place_is_an_interface_or_a_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    assert read_options("eth0", {}) == Ros2Cfg(interface="eth0")
    assert read_options("42", {}) == Ros2Cfg(domain=42)
    assert read_options("", {"domain": "7"}) == Ros2Cfg(domain=7)
    monkeypatch.setenv("ROS_DOMAIN_ID", "9")
    assert read_options("eth0", {}).domain == 9
    assert read_options("eth0", {"domain": "8"}).domain == 8


@pytest.mark.parametrize(
    ("place", "options", "message"),
    [
        ("eth0", {"domain": "233"}, "between 0 and 232"),
        ("eth0", {"domain": "zero"}, "option 'domain' takes a whole number, found 'zero'"),
        ("3", {"domain": "4"}, "said twice"),
        ('lo"/><x', {}, "no name of a network interface"),
        ("", {"state": "/joint states"}, "no ROS topic"),
        ("", {"command": ""}, "no ROS topic"),
        ("", {"kind": "float32"}, "one of joint_state, float64, trajectory"),
        ("", {"timeout_s": "nan"}, "between 0 and 60"),
        ("", {"stat": "/x"}, "did you mean 'state'"),
    ],
)
def test_wrong_option_is_refused_with_its_name(place: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(TrueupError, match=message):
        read_options(place, options)


def test_columns_follow_names() -> None:
    found = StateReader(NAMES, Ros2Cfg()).read(state(velocity=[20.0, 90.0, 30.0, 10.0], effort=[5.0, 6.0, 7.0, 8.0]), 0)
    assert found is not None
    assert found.time_s == 1.5
    assert found.position.tolist() == [1.0, 2.0, 3.0]
    assert found.velocity.tolist() == [10.0, 20.0, 30.0]
    assert found.effort.tolist() == [8.0, 5.0, 7.0]


@given(some.permutations(["a", "b", "c", "other", "one more"]))
def test_any_order_of_names_gives_the_same_state(names: list[str]) -> None:
    values = {"a": 1.0, "b": 2.0, "c": 3.0, "other": 4.0, "one more": 5.0}
    order = NameOrder(NAMES, "/t").find(names)
    assert order is not None
    assert np.array([values[name] for name in names])[order].tolist() == [1.0, 2.0, 3.0]


def test_names_that_change_between_messages_are_followed() -> None:
    reader = StateReader(NAMES, Ros2Cfg())
    reader.read(state(velocity=[0.0] * 4), 0)
    found = reader.read(state(name=["a", "b", "c"], position=[1.0, 2.0, 3.0], velocity=[0.0] * 3), 0)
    assert found is not None
    assert found.position.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"position": [1.0]}, "4 names and 1 values of position"),
        ({"velocity": []}, "carries no velocities; velocity=difference"),
        ({"velocity": [1.0]}, "4 names and 1 values of velocity"),
        ({"velocity": [0.0] * 4, "effort": [0.0]}, "4 names and 1 values of effort"),
        ({"name": ["a", "a", "b", "c"], "velocity": [0.0] * 4}, "joint 'a' twice"),
        ({"name": ["a", "b", "C", "x"], "velocity": [0.0] * 4}, "2 of 3 joints: c missing"),
        ({"name": [str(k) for k in range(5000)]}, "names 5000 joints"),
    ],
)
def test_malformed_state_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(TrueupError, match=message):
        StateReader(NAMES, Ros2Cfg()).read(state(**fields), 0.0)


def test_velocity_by_difference_is_rise_over_run() -> None:
    reader = StateReader(("a",), Ros2Cfg(velocity="difference"))

    def at(nanosec: int, position: float) -> float:
        message = JointState(Header(Time(7, nanosec)), ["a"], [position])
        found = reader.read(message, 0.0)
        assert found is not None
        return float(found.velocity[0])

    assert at(0, 1.0) == 0.0
    assert at(10_000_000, 1.2) == pytest.approx(20.0)
    assert at(10_000_000, 1.2) == 0.0  # the same state again: no time has passed


def test_imu_is_reordered_and_covariance_of_minus_one_means_absent() -> None:
    turn = Quaternion(x=0.1, y=0.2, z=0.3, w=0.9)
    full = read_imu(Imu(orientation=turn, angular_velocity=Vector3(1, 2, 3), linear_acceleration=Vector3(4, 5, 6)))
    assert full.quat is not None
    assert full.quat.tolist() == [0.9, 0.1, 0.2, 0.3]
    assert np.concatenate([full.gyro, full.acc]).tolist() == [1, 2, 3, 4, 5, 6]  # type: ignore[list-item]
    absent = [-1.0] + [0.0] * 8
    assert read_imu(Imu(orientation_covariance=absent)).quat is None
    assert read_imu(Imu(angular_velocity_covariance=absent)).gyro is None
    assert read_imu(Imu(linear_acceleration_covariance=absent)).acc is None


@pytest.mark.parametrize(
    ("time_s", "split"), [(1.5, (1, 500_000_000)), (0.9999999999, (1, 0)), (-0.25, (-1, 750_000_000)), (0.0, (0, 0))]
)
def test_seconds_are_split_as_ros_has_them(time_s: float, split: tuple[int, int]) -> None:
    assert split_seconds(time_s) == split


@pytest.mark.parametrize("kind", ["joint_state", "float64", "trajectory"])
def test_what_is_packed_comes_out_again(kind: str) -> None:
    cfg = read_options("", {"kind": kind, "joints": "c,a,b"})
    layout = CommandFormat(NAMES, cfg, 100.0)
    asked = CommandTargets(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), np.array([7.0, 8.0, 9.0]))
    message, sent = layout.pack(asked, 12.5)
    wire = type(message).deserialize(message.serialize())
    for said, read in zip(sent, layout.unpack(wire), strict=True):
        assert said.tolist() == read.tolist()
    assert sent.position.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("kind", "message", "found"),
    [
        ("float64", Float64MultiArray(data=[1.0, 2.0]), "2 numbers for 3 joints"),
        ("trajectory", JointTrajectory(joint_names=["a", "b", "c"]), "without points"),
        (
            "trajectory",
            JointTrajectory(joint_names=["a", "b", "c"], points=[JointTrajectoryPoint(positions=[1.0])]),
            "3 names and 1, 0, 0 values",
        ),
        ("joint_state", JointState(name=["x"], position=[1.0]), "joints of another robot"),
        ("joint_state", JointState(name=["a", "b"], position=[1.0, 2.0]), "c missing"),
        ("joint_state", JointState(name=["a", "b", "c"]), "3 names and 0, 0, 0 values"),
    ],
)
def test_malformed_command_is_refused(kind: str, message: object, found: str) -> None:
    with pytest.raises(TrueupError, match=found):
        CommandFormat(NAMES, read_options("", {"kind": kind}), 100.0).unpack(message)


@pytest.mark.parametrize(
    ("joints", "message"), [("a,b", "lists 2 names"), ("a,b,b", "lists 3"), ("a,b,d", "joint 'd'")]
)
def test_order_of_the_controller_must_be_whole(joints: str, message: str) -> None:
    with pytest.raises(TrueupError, match=message):
        CommandFormat(NAMES, read_options("", {"joints": joints}), 100.0)
