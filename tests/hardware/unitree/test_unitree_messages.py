"""Bytes of LowCmd and LowState: layouts against cyclonedds' own, checksums against numbers from Unitree's own code."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.unitree import idl_go, idl_hg
from trueup.hardware.drivers.unitree.crc import checksum, is_sound, stamp
from trueup.hardware.drivers.unitree.layout import Record, Struct

MESSAGES = (idl_go.LOW_CMD, idl_go.LOW_STATE, idl_hg.LOW_CMD, idl_hg.LOW_STATE, idl_hg.BMS_STATE)
every_message = pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.typename)


def crc_bit_by_bit(words: list[int]) -> int:
    """The definition, one bit after another."""
    crc = 0xFFFFFFFF
    for word in words:
        for bit in range(31, -1, -1):
            top = (crc >> 31) ^ (word >> bit & 1)
            crc = (crc << 1 & 0xFFFFFFFF) ^ (0x04C11DB7 if top else 0)
    return crc


def random_message(message: Struct, seed: int = 0) -> Record:
    """Random bits everywhere but in the padding."""
    record, random = message.new(), np.random.default_rng(seed)
    c_index = message.byte_index[0]
    record.view(np.uint8)[c_index] = random.integers(0, 256, len(c_index))
    return record


def fill(message: Struct, values: np.void) -> Any:
    """The same message as an object of cyclonedds."""
    fields = {}
    for name, kind, count in message.fields:
        value = values[name]
        if isinstance(kind, Struct):
            fields[name] = [fill(kind, one) for one in value] if count else fill(kind, value)
        else:
            fields[name] = value.tolist()
    return message.idl(**fields)


# --- layouts ---
@pytest.mark.parametrize(
    ("message", "size"), [(m, s) for m, s in zip(MESSAGES, (812, 1180, 1004, 2092, 164), strict=True)]
)
def test_structures_have_the_sizes_of_the_robots_c_code(message: Struct, size: int) -> None:
    assert message.dtype.itemsize == size


def test_a_structure_is_aligned_in_c_and_packed_in_cdr() -> None:
    inner = Struct("t.Inner_", (("a", "u1", 0), ("b", "f4", 0)))
    outer = Struct("t.Outer_", (("x", "u2", 0), ("inner", inner, 2), ("y", "u1", 0)))
    record = outer.new()
    record["x"], record["y"] = 0x0201, 9
    record["inner"]["a"], record["inner"]["b"] = [[3, 4]], [[1.0, 2.0]]
    one, two = struct.pack("<f", 1.0), struct.pack("<f", 2.0)
    assert record.tobytes() == b"\1\2\0\0" + b"\3\0\0\0" + one + b"\4\0\0\0" + two + b"\11\0\0\0"
    assert outer.to_cdr(record) == b"\0\1\0\0" + b"\1\2\3\0" + one + b"\4\0\0\0" + two + b"\11\0\0\0"


@every_message
def test_bytes_are_those_that_cyclonedds_writes_number_by_number(message: Struct) -> None:
    pytest.importorskip("cyclonedds")
    record = message.new()
    numbers = np.random.default_rng(1).integers(0, 127, len(message.byte_index[0]), np.uint8)
    record.view(np.uint8)[message.byte_index[0]] = numbers
    theirs = fill(message, record[0]).serialize()
    ours = message.to_cdr(record)
    assert ours[: len(theirs)] == theirs
    assert not any(ours[len(theirs) :])


@every_message
def test_types_announced_for_bytes_are_those_of_the_full_type(message: Struct) -> None:
    pytest.importorskip("cyclonedds")
    assert message.sample.__idl__.get_type_id() == message.idl.__idl__.get_type_id()
    assert message.sample.__idl__.idl_transformed_typename == message.typename.replace(".", "::")


@every_message
def test_a_message_comes_back_from_cdr_bit_by_bit(message: Struct) -> None:
    record = random_message(message)
    assert message.from_cdr(message.to_cdr(record)).tobytes() == record.tobytes()


@every_message
def test_short_and_big_endian_frames_are_refused(message: Struct) -> None:
    cdr = message.to_cdr(random_message(message))
    size = message.byte_index[2]
    for bad in (b"", cdr[: 3 + size], b"\0\0\0\0" + cdr[4:]):
        with pytest.raises(TrueupError, match="expected"):
            message.from_cdr(bad)


def test_cdr_of_the_second_version_is_read_too() -> None:
    record = random_message(idl_go.LOW_STATE)
    cdr = idl_go.LOW_STATE.to_cdr(record)
    assert idl_go.LOW_STATE.from_cdr(b"\0\7\0\0" + cdr[4:]).tobytes() == record.tobytes()


# --- checksum ---
@pytest.mark.parametrize("seed", range(5))
@every_message
def test_the_checksum_equals_its_definition_bit_by_bit(message: Struct, seed: int) -> None:
    words = np.frombuffer(random_message(message, seed).tobytes()[:-4], "<u4")
    assert checksum(random_message(message, seed)) == crc_bit_by_bit(words.tolist())


def motors(record: Record, field: str, **values: Any) -> None:
    for name, value in values.items():
        record[field][name][0] = value


def test_checksums_are_those_of_unitrees_own_code() -> None:
    """Numbers computed once by the CRC of unitree_sdk2py for the same messages."""
    i, j = np.arange(20), np.arange(35)
    go, hg = idl_go.LOW_CMD.new(), idl_hg.LOW_CMD.new()
    assert checksum(go) == 0x4B5A4880
    go["head"], go["level_flag"] = (0xFE, 0xEF), 0xFF
    motors(go, "motor_cmd", mode=1, q=0.1 * i, dq=-0.2 * i, tau=0.3 * i, kp=20.0 + i, kd=0.5)
    assert checksum(go) == 0x0774CE22
    hg["mode_machine"] = 5
    motors(hg, "motor_cmd", mode=1, q=0.1 * j, dq=-0.2 * j, tau=0.3 * j, kp=20.0 + j, kd=0.5)
    assert checksum(hg) == 0x77960B00
    state = idl_go.LOW_STATE.new()
    state["head"], state["level_flag"], state["tick"], state["power_v"] = (0xFE, 0xEF), 0xFF, 123456, 28.5
    state["imu_state"]["quaternion"], state["imu_state"]["temperature"] = (1, 0, 0, 0), 60
    state["bms_state"]["soc"], state["bms_state"]["cell_vol"] = 77, np.arange(15)
    state["foot_force"], state["fan_frequency"] = (-1, 2, -3, 4), (9, 8, 7, 6)
    state["bit_flag"], state["temperature_ntc1"] = 3, 44
    motors(state, "motor_state", q=0.1 * i, dq=-0.2 * i, tau_est=0.3 * i, temperature=30 + i, lost=i)
    assert checksum(state) == 0x1A601ED5
    state = idl_hg.LOW_STATE.new()
    state["mode_machine"], state["tick"], state["version"] = 5, 123456, (1, 2)
    state["imu_state"]["quaternion"], state["imu_state"]["temperature"] = (1, 0, 0, 0), -5
    pairs = np.stack([30 + j, 40 + j], axis=1)
    motors(state, "motor_state", q=0.1 * j, dq=-0.2 * j, tau_est=0.3 * j, temperature=pairs, vol=48.0)
    assert checksum(state) == 0x3FA352F5


def test_any_flipped_bit_is_noticed() -> None:
    record = stamp(random_message(idl_hg.LOW_CMD))
    assert is_sound(record)
    for position in np.random.default_rng(3).choice(idl_hg.LOW_CMD.byte_index[0], 200):
        damaged = record.copy()
        damaged.view(np.uint8)[position] ^= 1 << (position % 8)
        assert not is_sound(damaged), position
