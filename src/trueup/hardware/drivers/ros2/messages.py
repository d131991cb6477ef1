"""ROS 2 message types as DDS knows them: names, member order and types of the .msg files, serialised as plain CDR.

ROS 2 puts `dds_` into the namespace of a type and an underscore behind its name: `sensor_msgs/msg/JointState` is
`sensor_msgs::msg::dds_::JointState_` on the wire. All types are final (no XTypes headers) and have no key. Members keep
the names of the .msg files. These definitions have been the same in every distribution from Foxy to Kilted.

This module needs `cyclonedds`; it has no `from __future__ import annotations` because cyclonedds reads the types
of members at run time.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, dataclass_transform

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import array, float64, int32, sequence, uint32

if TYPE_CHECKING:  # what a reader of these messages gets
    Names = list[str]
    Numbers = list[float]
    Covariance = list[float]
else:  # what cyclonedds serialises
    Names = sequence[str]
    Numbers = sequence[float64]
    Covariance = array[float64, 9]
T = TypeVar("T", bound=IdlStruct)


@dataclass_transform(field_specifiers=(field,))
def _message(kind: type[T]) -> type[T]:
    """Make a class a final IDL type with the fields of a dataclass."""
    return dataclass(final(kind))


@_message
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    """A point in time: seconds and nanoseconds."""

    sec: int32 = 0
    nanosec: uint32 = 0


@_message
class Duration(IdlStruct, typename="builtin_interfaces::msg::dds_::Duration_"):
    """A span of time: seconds and nanoseconds."""

    sec: int32 = 0
    nanosec: uint32 = 0


@_message
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    """When and in which frame something was measured."""

    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@_message
class JointState(IdlStruct, typename="sensor_msgs::msg::dds_::JointState_"):
    """Positions (rad), velocities (rad/s) and efforts (N m) of joints by name; each list may be empty."""

    header: Header = field(default_factory=Header)
    name: Names = field(default_factory=list)
    position: Numbers = field(default_factory=list)
    velocity: Numbers = field(default_factory=list)
    effort: Numbers = field(default_factory=list)


@_message
class Quaternion(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):
    """An orientation, x y z w."""

    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0
    w: float64 = 1.0


@_message
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    """Three numbers."""

    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


def _unknown() -> list[float]:
    """A covariance that is not known: all zero."""
    return [0.0] * 9


@_message
class Imu(IdlStruct, typename="sensor_msgs::msg::dds_::Imu_"):
    """Orientation, angular velocity (rad/s), acceleration (m/s^2); a covariance that begins with -1: not measured."""

    header: Header = field(default_factory=Header)
    orientation: Quaternion = field(default_factory=Quaternion)
    orientation_covariance: Covariance = field(default_factory=_unknown)
    angular_velocity: Vector3 = field(default_factory=Vector3)
    angular_velocity_covariance: Covariance = field(default_factory=_unknown)
    linear_acceleration: Vector3 = field(default_factory=Vector3)
    linear_acceleration_covariance: Covariance = field(default_factory=_unknown)


@_message
class MultiArrayDimension(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayDimension_"):
    """One axis of an array."""

    label: str = ""
    size: uint32 = 0
    stride: uint32 = 0


if TYPE_CHECKING:
    Dimensions = list[MultiArrayDimension]
else:
    Dimensions = sequence[MultiArrayDimension]


@_message
class MultiArrayLayout(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayLayout_"):
    """Axes of an array; forward_command_controller needs none."""

    dim: Dimensions = field(default_factory=list)
    data_offset: uint32 = 0


@_message
class Float64MultiArray(IdlStruct, typename="std_msgs::msg::dds_::Float64MultiArray_"):
    """Numbers without names: what ros2_control's forward_command_controller takes."""

    layout: MultiArrayLayout = field(default_factory=MultiArrayLayout)
    data: Numbers = field(default_factory=list)


@_message
class JointTrajectoryPoint(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectoryPoint_"):
    """Joint targets at `time_from_start` after the message."""

    positions: Numbers = field(default_factory=list)
    velocities: Numbers = field(default_factory=list)
    accelerations: Numbers = field(default_factory=list)
    effort: Numbers = field(default_factory=list)
    time_from_start: Duration = field(default_factory=Duration)


if TYPE_CHECKING:
    Points = list[JointTrajectoryPoint]
else:
    Points = sequence[JointTrajectoryPoint]


@_message
class JointTrajectory(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectory_"):
    """Points for joints by name: what ros2_control's joint_trajectory_controller takes."""

    header: Header = field(default_factory=Header)
    joint_names: Names = field(default_factory=list)
    points: Points = field(default_factory=list)


@_message
class Bool(IdlStruct, typename="std_msgs::msg::dds_::Bool_"):
    """Yes or no: what a stop topic takes."""

    data: bool = False
