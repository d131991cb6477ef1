from __future__ import annotations

import random
import zlib

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.hardware import wire
from trueup.hardware.wire import Kind, StateReport, TapCounts, Welcome

N = 3


def a_command() -> np.ndarray:
    """Rows target_pos, target_vel, kp, kd, torque."""
    return np.random.default_rng(1).normal(size=(5, N))


def a_report(imu: bool = True) -> StateReport:
    numbers = np.random.default_rng(2).normal(size=4 * N + 10 * imu)
    return StateReport(sequence=7, time_s=1.25, njoint=N, has_imu=imu, acknowledged=41, voltage=23.5, numbers=numbers)


WELCOME = Welcome(
    joint_names=("a", "b", "hüfte"),
    name="go2-mild-7",
    lockstep=True,
    has_imu=False,
    command_hz=400.0,
    physics_hz=1200.0,
)


def all_frames() -> list[bytes]:
    return [
        wire.encode(Kind.HELLO, 0, 0.0),
        wire.encode_welcome(1, 0.0, WELCOME),
        wire.encode_rows(2, 0.5, a_command()),
        wire.encode_report(a_report()),
        wire.encode_report(a_report(imu=False)),
        wire.encode(Kind.TICK, 3, 0.5),
        wire.encode(Kind.TAP, 0, 0.0),
        wire.encode_tap(4, 0.0, TapCounts(commands=5, nonfinite=1)),
        wire.encode(Kind.BYE, 5, 0.0),
        wire.encode_refusal(6, 0.0, "busy"),
    ]


PARSERS = {
    Kind.WELCOME: wire.parse_welcome,
    Kind.COMMAND: wire.command_rows,
    Kind.STATE: wire.parse_state,
    Kind.TAP_COUNTS: wire.parse_tap,
    Kind.REFUSAL: wire.parse_refusal,
}


def test_the_layout_is_the_documented_one() -> None:
    frame = wire.encode(Kind.TICK, 0x01020304, 1.0, b"")
    assert frame[:8] == b"TRUP" + bytes([1, 5, 0, 0])
    assert frame[8:12] == bytes([4, 3, 2, 1])  # little-endian
    assert frame[12:20] == np.array([1.0], "<f8").tobytes()
    assert int.from_bytes(frame[20:], "little") == zlib.crc32(frame[:20])
    assert len(frame) == 24


def test_a_command_arrives_bit_for_bit_even_with_nan() -> None:
    command = a_command()
    command[4, 1] = np.nan
    frame = wire.decode(wire.encode_rows(9, 2.5, command))
    assert (frame.kind, frame.sequence, frame.time_s) == (Kind.COMMAND, 9, 2.5)
    assert wire.command_rows(frame).tobytes() == command.tobytes()


@pytest.mark.parametrize("imu", [True, False])
def test_a_state_arrives_bit_for_bit(imu: bool) -> None:
    report = a_report(imu)
    back, acknowledged = wire.parse_state(wire.decode(wire.encode_report(report)))
    assert acknowledged == 41
    assert (back.sequence, back.time_s, back.voltage) == (7, 1.25, 23.5)
    joints = (back.joint_pos, back.joint_vel, back.joint_torque, back.joint_temperature)
    sensors = (back.imu_quat, back.imu_gyro, back.imu_acc)
    assert np.array_equal(np.concatenate([*joints, *(sensors if imu else ())]), report.numbers)
    assert [None if part is None else len(part) for part in sensors] == ([4, 3, 3] if imu else [None] * 3)


def test_welcome_counts_and_refusal_arrive() -> None:
    assert wire.parse_welcome(wire.decode(wire.encode_welcome(1, 0.0, WELCOME))) == WELCOME
    counts = TapCounts(commands=3, accepted=2, nonfinite=1, periods=2**40)
    assert wire.parse_tap(wire.decode(wire.encode_tap(1, 0.0, counts))) == counts
    assert wire.parse_refusal(wire.decode(wire.encode_refusal(1, 0.0, "no: Ü"))) == "no: Ü"


def test_every_flipped_bit_is_noticed() -> None:
    frame = wire.encode_rows(2, 0.5, a_command())
    for bit in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(TrueupError):
            wire.decode(bytes(damaged))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: b"", "at least"),
        (lambda f: f[:10], "at least"),
        (lambda f: b"XXXX" + f[4:], "starts with"),
        (lambda f: f[:4] + b"\x63" + f[5:], "version 99"),
        (lambda f: f[:-1], "declared"),
        (lambda f: f + b"\x00", "declared"),
        (lambda f: f[:20] + b"\xff" + f[21:], "checksum"),
    ],
)
def test_a_refused_frame_says_why(damage: object, words: str) -> None:
    assert callable(damage)
    with pytest.raises(TrueupError, match=words):
        wire.decode(damage(wire.encode_rows(2, 0.5, a_command())))


def signed(body: bytes) -> bytes:
    return body + zlib.crc32(body).to_bytes(4, "little")


def test_unknown_kind_wrong_time_and_wrong_sizes_are_refused_in_spite_of_a_right_checksum() -> None:
    frame = wire.encode_rows(2, 0.5, a_command())[:-4]
    with pytest.raises(TrueupError, match="kind 77"):
        wire.decode(signed(frame[:5] + b"\x4d" + frame[6:]))
    with pytest.raises(TrueupError, match="finite"):
        wire.decode(signed(frame[:12] + np.array([np.nan], "<f8").tobytes() + frame[20:]))
    more_joints = wire.decode(signed(frame[:20] + b"\x04\x00" + frame[22:]))
    with pytest.raises(TrueupError, match="carries"):
        wire.command_rows(more_joints)
    with pytest.raises(TrueupError, match="1 to 256"):
        wire.command_rows(wire.decode(signed(frame[:20] + b"\x00\x00" + frame[22:])))
    with pytest.raises(TrueupError, match="STATE"):
        wire.parse_state(more_joints)


def test_a_thousand_mutated_frames_are_frames_or_trueup_errors() -> None:
    rng = random.Random(3)
    frames, refused, parsed = all_frames(), 0, 0
    for round_ in range(1000):
        data = bytearray(rng.choice(frames))
        for _ in range(rng.randint(0, 6)):
            match rng.randrange(4):
                case 0:
                    data[rng.randrange(len(data))] = rng.randrange(256)
                case 1:
                    del data[rng.randrange(len(data)) :]
                case 2:
                    data += rng.randbytes(rng.randint(1, 40))
                case 3:
                    at = rng.randrange(len(data) + 1)
                    data[at:at] = rng.randbytes(rng.randint(1, 8))
            if not data:
                break
        mutated = bytes(data)
        if round_ % 2 and len(mutated) >= 24:  # let the inner checks see it: right length and checksum
            length = (len(mutated) - 24).to_bytes(2, "little")
            mutated = signed(b"TRUP\x01" + mutated[5:6] + length + mutated[8:-4])
        try:
            frame = wire.decode(mutated)
            if frame.kind in PARSERS:
                PARSERS[frame.kind](frame)
            parsed += 1
        except TrueupError:
            refused += 1
    assert refused > 300
    assert parsed > 100
