"""The wire format: bytes by hand, there and back, and input that never ends."""

import numpy as np
import pytest
from onnx import StringStringEntryProto, TensorProto

from trueup.policy.graph import protobuf as pb


def read(data):
    return [
        (number, value if isinstance(value, int) else bytes(value)) for number, value in pb.fields(memoryview(data))
    ]


def test_bytes_by_hand_are_read():
    # field 1 varint 150; field 2 text "hi"; field 3 four bytes; field 4 eight bytes
    data = bytes([0x08, 0x96, 0x01, 0x12, 2, *b"hi", 0x1D, 1, 2, 3, 4, 0x21, *range(8)])
    assert read(data) == [(1, 150), (2, b"hi"), (3, bytes([1, 2, 3, 4])), (4, bytes(range(8)))]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**62, -1, -(2**63)])
def test_whole_numbers_come_back_signed(value):
    ((number, found),) = pb.fields(memoryview(pb.number_field(7, value)))
    assert (number, pb.signed(found)) == (7, value)


def test_packed_numbers_come_back_and_single_ones_too():
    ((_, packed),) = pb.fields(memoryview(pb.packed_field(1, [3, -1, 500])))
    assert pb.integers(packed) == [3, -1, 500]
    assert pb.integers(7) == [7]


def test_floats_are_little_endian():
    ((_, found),) = pb.fields(memoryview(pb.float_field(2, 0.15625)))
    assert pb.floats(found).tolist() == [0.15625]
    with pytest.raises(ValueError, match="cut off"):
        pb.floats(memoryview(b"123"))


def test_what_is_written_is_what_the_reference_reads():
    entry = StringStringEntryProto.FromString(pb.bytes_field(1, "key") + pb.bytes_field(2, "wert ü"))
    assert (entry.key, entry.value) == ("key", "wert ü")
    raw = np.arange(3, dtype="<f4").tobytes()
    tensor = TensorProto.FromString(pb.packed_field(1, [3]) + pb.number_field(2, 1) + pb.bytes_field(9, raw))
    assert list(tensor.dims) == [3]
    assert tensor.raw_data == raw


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"\x08", "no end"),  # a number is announced and missing
        (b"\x08" + b"\xff" * 20, "no end"),  # a number of more than ten bytes
        (b"\x12\x7f" + b"x" * 5, "beyond the end"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "beyond the end"),
        (b"\x0b", "wire type 3"),  # groups are no part of it
        (b"\x02\x00", "beyond the end"),  # field number zero
    ],
)
def test_what_is_no_message_is_refused(data, named):
    with pytest.raises(ValueError, match=named):
        read(data)


def test_text_and_numbers_are_not_taken_for_each_other():
    with pytest.raises(ValueError, match="number was found"):
        pb.text(3)
    with pytest.raises(ValueError, match="a number was expected"):
        pb.signed(memoryview(b"3"))
