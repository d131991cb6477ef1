"""Our DDS types against `rosbags`, which knows the ROS 2 message definitions and writes CDR on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from trueup.hardware.drivers.ros2 import messages as ours

DISTRIBUTIONS = [store for store in Stores if store.value in {"ros2_foxy", "ros2_humble", "ros2_jazzy", "ros2_kilted"}]
STORES = {store.value: get_typestore(store) for store in DISTRIBUTIONS}
STAMP = ours.Header(ours.Time(1_700_000_001, 999_999_999), "base_link")
NINE = [float(k) for k in range(9)]
POINT = ours.JointTrajectoryPoint([1.0, -2.0], [0.5], [], [3.0], ours.Duration(1, 20_000_000))
AXIS = ours.MultiArrayDimension("joint", 3, 3)
EXAMPLES = {
    "sensor_msgs/msg/JointState": ours.JointState(STAMP, ["a", "hip_joint", ""], [0.1, -0.2, 1e-9], [], [1.0]),
    "sensor_msgs/msg/Imu": ours.Imu(
        STAMP, ours.Quaternion(0.1, 0.2, 0.3, 0.9), NINE, ours.Vector3(1.0, 2.0, 3.0), NINE, ours.Vector3(4.0, 5.0, 6.0)
    ),
    "std_msgs/msg/Float64MultiArray": ours.Float64MultiArray(ours.MultiArrayLayout([AXIS, AXIS], 7), [0.5, -0.5]),
    "trajectory_msgs/msg/JointTrajectory": ours.JointTrajectory(STAMP, ["a", "bc"], [POINT, POINT]),
    "std_msgs/msg/Bool": ours.Bool(True),
}


def as_rosbags(message: Any, type_name: str, store: Any) -> Any:
    """The same message in the classes of rosbags, member by member, by the definitions that rosbags has."""
    values = []
    for name, (kind, detail) in store.fielddefs[type_name][1]:
        value = getattr(message, name)
        inner = detail if kind == 2 else detail[0] if kind in (3, 4) else None
        if kind == 2:  # a message
            value = as_rosbags(value, inner, store)
        elif kind in (3, 4) and inner[0] == 2:  # a list of messages
            value = [as_rosbags(item, inner[1], store) for item in value]
        elif kind in (3, 4) and inner[1][0] != "string":
            value = np.array(value, np.float64)
        values.append(value)
    return store.types[type_name](*values)


@pytest.mark.parametrize("store", STORES.values(), ids=STORES.keys())
@pytest.mark.parametrize("type_name", EXAMPLES)
def test_bytes_equal_those_of_rosbags(type_name: str, store: Any) -> None:
    message = EXAMPLES[type_name]
    witness = bytes(store.serialize_cdr(as_rosbags(message, type_name, store), type_name))
    assert message.serialize() == witness
    assert type(message).deserialize(witness) == message


@pytest.mark.parametrize("type_name", EXAMPLES)
def test_names_on_the_wire_are_those_of_ros(type_name: str) -> None:
    package, _, name = type_name.split("/")
    assert EXAMPLES[type_name].__idl_typename__ == f"{package}::msg::dds_::{name}_"


@pytest.mark.parametrize("type_name", EXAMPLES)
def test_types_have_no_key_and_no_xtypes_header(type_name: str) -> None:
    idl = EXAMPLES[type_name].__idl__
    idl.populate()
    assert idl.keyless
    assert EXAMPLES[type_name].serialize()[:2] == b"\x00\x01"  # plain CDR, little endian
