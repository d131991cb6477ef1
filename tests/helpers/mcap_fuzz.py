"""Mutated and hostile MCAP files, read in a process of their own so that its memory can be measured.

Run as a program with a number of files and a seed: prints the outcome as JSON.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import zstandard
from mcap.data_stream import RecordBuilder
from mcap.records import Channel, Header, Schema
from mcap.writer import CompressionType
from mcap_logs import ForeignBag, full_log, joint_state

from trueup.core.errors import TrueupError
from trueup.data.mcap.read import read_mcap
from trueup.data.mcap.records import MAGIC
from trueup.data.mcap.recover import recover
from trueup.data.mcap.ros2 import definition
from trueup.data.mcap.write import LogWriter, write_log


def peak_megabytes() -> int:
    """The most memory this program has held; `ru_maxrss` would also count what its parent held when it was started."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def originals(folder: Path) -> list[bytes]:
    """Our own files, streamed and whole, and those of another recorder in all compressions."""
    log = full_log(rows=60)
    write_log(log, folder / "whole.mcap")
    with LogWriter(folder / "stream.mcap", log.joint_names, log.meta) as writer:
        for k, time_s in enumerate(log.time):
            writer.append(time_s, **{name: values[k] for name, values in log.signals.items()})
    for compression in CompressionType:
        bag = ForeignBag(folder / f"{compression.name}.mcap", compression)
        for k in range(60):
            message = joint_state(k / 100, ["hip", "knee"], position=[0.1 * k, 1.0], velocity=[1.0, 2.0])
            bag.add("/joint_states", "sensor_msgs/JointState", message, k / 100)
            if k % 3 == 0:
                bag.add("/joint_commands", "sensor_msgs/JointState", message, k / 100)
            bag.add("/imu", "sensor_msgs/Imu", {"orientation": {"w": 1.0}}, k / 100)
        bag.close()
    return [path.read_bytes() for path in sorted(folder.glob("*.mcap"))]


def records(raw: bytes) -> list[tuple[int, int]]:
    """Start and end of every record of a whole file."""
    out, pos = [], 8
    while pos + 9 <= len(raw) - 8:
        end = pos + 9 + struct.unpack_from("<Q", raw, pos + 1)[0]
        out.append((pos, end))
        pos = end
    return out


def flip_bits(raw: bytes, rng: Random) -> bytes:
    out = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 8, 100])):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def cut(raw: bytes, rng: Random) -> bytes:
    return raw[: rng.randrange(len(raw))]


def cut_and_flip(raw: bytes, rng: Random) -> bytes:
    return flip_bits(cut(raw, rng) or raw, rng)


def drop_or_double_record(raw: bytes, rng: Random) -> bytes:
    start, end = rng.choice(records(raw))
    return raw[:start] + raw[start:end] * rng.choice([0, 2, 3, 50]) + raw[end:]


def swap_records(raw: bytes, rng: Random) -> bytes:
    (a, b), (c, d) = sorted(rng.sample(records(raw), 2))
    return raw[:a] + raw[c:d] + raw[b:c] + raw[a:b] + raw[d:]


def huge_length(raw: bytes, rng: Random) -> bytes:
    start, end = rng.choice(records(raw))
    out = bytearray(raw)
    value = rng.choice([2**64 - 1, 2**63, 2**32, 2**31 - 1, 10**9, 0, 1, end - start])
    struct.pack_into("<Q", out, start + 1, value)
    return bytes(out)


def huge_field(raw: bytes, rng: Random) -> bytes:
    """A length somewhere inside a record: of a string, of a map, of a chunk."""
    start, _ = rng.choice(records(raw))
    out = bytearray(raw)
    code = rng.choice("IQ")
    place = min(start + 9 + rng.randrange(60), len(raw) - 8)
    struct.pack_into("<" + code, out, place, rng.choice([2**32 - 1, 2**31, 2**24, 2**16, 0]))
    return bytes(out)


def random_bytes(raw: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(raw))
    return raw[:start] + rng.randbytes(rng.choice([1, 10, 1000])) + raw[start + rng.choice([0, 10, 1000]) :]


Stored = tuple[bytes, int, str]  # bytes in the file, claimed size, compression


def chunk_file(chunks: list[Stored], padding: int = 0) -> bytes:
    """A file of these chunks, without checksums; padding makes it larger, and so what it may ask for."""
    text = definition("sensor_msgs/JointState").encode()
    builder = RecordBuilder()
    Header("ros2", "").write(builder)
    Schema(id=1, name="sensor_msgs/msg/JointState", encoding="ros2msg", data=text).write(builder)
    Channel(id=1, schema_id=1, topic="/joint_states", message_encoding="cdr", metadata={}).write(builder)
    out = bytearray(MAGIC + builder.end())
    for stored, size, compression in chunks:
        name = struct.pack("<I", len(compression)) + compression.encode()
        body = struct.pack("<QQQI", 0, 0, size, 0) + name + struct.pack("<Q", len(stored)) + stored
        out += struct.pack("<BQ", 6, len(body)) + body
    out += struct.pack("<BQ", 0x80, padding) + bytes(padding)
    out += struct.pack("<BQI", 15, 4, 0) + struct.pack("<BQQQI", 2, 20, 0, 0, 0)
    return bytes(out + b"\x89MCAP0\r\n")


def packed(data: bytes) -> Stored:
    return zstandard.compress(data), len(data), "zstd"


def plain(data: bytes) -> Stored:
    return data, len(data), ""


def record(cdr: bytes) -> bytes:
    return struct.pack("<BQH", 5, 22 + len(cdr), 1) + bytes(20) + cdr


def joint_state_cdr(names: int, widths: tuple[int, int, int]) -> bytes:
    """A JointState of joints with names of four letters: every field is aligned as it stands."""
    out = struct.pack("<IiIII", 0x100, 1, 2, 1, 0)
    out += struct.pack("<I", names) + b"".join(struct.pack("<I3sx4x", 4, b"%03d" % k)[:8] for k in range(names))
    for width in widths:
        out += struct.pack("<I", width)
        if width:
            out += bytes(-(len(out) - 4) % 8) + bytes(8 * width)
    return out


CDR = joint_state_cdr(2, (2, 2, 0))


def mutate_messages(raw: bytes, rng: Random) -> bytes:
    """Damage inside messages without a checksum: the way past the checksums and into the decoder."""
    out = bytearray(record(CDR) * 20)
    for _ in range(rng.choice([1, 3, 20])):
        place = rng.randrange(len(out) - 4)
        struct.pack_into("<I", out, place, rng.choice([2**32 - 1, 2**31, 1000, 7, 0, rng.getrandbits(32)]))
    return chunk_file([packed(bytes(out))])


MUTATORS: list[Callable[[bytes, Random], bytes]] = [
    flip_bits,
    cut,
    cut_and_flip,
    drop_or_double_record,
    swap_records,
    huge_length,
    huge_field,
    random_bytes,
    mutate_messages,
]


def hostile() -> Iterator[tuple[str, bytes]]:
    """Small files made to cost much, but for the first, which shows that the others could be read."""
    yield "honest", chunk_file([plain(record(CDR) * 40_000)])
    zeros = zstandard.compress(bytes(60 << 20))
    yield "bomb that tells its size", chunk_file([(zeros, 60 << 20, "zstd")] * 50)
    yield "bomb that hides its size", chunk_file([(zeros, 1000, "zstd")] * 50)
    yield "claims an exabyte", chunk_file([(zeros, 2**60, "zstd")])
    tiny = record(b"")
    yield "tiny messages", chunk_file([packed(tiny * 1_500_000)] * 20)
    yield "as many tiny messages as allowed", chunk_file([packed(tiny * 200_000)], 3 << 20)
    yield "as many messages as allowed", chunk_file([packed(record(CDR) * 200_000)], 3 << 20)
    wide = record(joint_state_cdr(1000, (0, 0, 0)))
    full = record(joint_state_cdr(1000, (1000, 1000, 1000)))
    yield "wide messages", chunk_file([packed(wide * 5000), packed(wide * 5000)], 3 << 20)
    yield ("wide messages, then a full one", chunk_file([packed(wide * 5000), packed(wide * 5000 + full)], 3 << 20))
    yield "full messages", chunk_file([packed(full * 1000)] * 3, 4 << 20)
    yield "long and wide", chunk_file([packed(record(CDR) * 100_000 + full * 10)], 3 << 20)
    changing = b"".join(record(CDR[:32] + struct.pack("<I", k)[:3] + CDR[35:]) for k in range(30_000))
    yield "a layout for each message", chunk_file([plain(changing)])
    fake = b"\x06" + struct.pack("<QQQQII", 40 + 8, 0, 0, 8, 1, 0) + struct.pack("<Q", 8) + bytes(8)
    yield "fake chunks", b"\x89MCAP0\r\n" + bytes(9) + fake * 40_000
    nested = b"[" * 500_000 + b"]" * 500_000
    table = b"".join(
        struct.pack("<I", len(text)) + text
        for pair in ((b"schema", b"1"), (b"joint_names", b"[]"), (b"signals", b"[]"), (b"provenance", nested))
        for text in pair
    )
    body = struct.pack("<I", 6) + b"trueup" + struct.pack("<I", len(table)) + table
    start = chunk_file([])
    yield "deep metadata", start[:8] + struct.pack("<BQ", 12, len(body)) + body + start[8:]
    topics = b"".join(struct.pack("<BQHHIII", 4, 16, k % 65536, 0, 0, 0, 0) for k in range(150_000))
    yield "topics without end", start[:8] + topics + start[8:]


def try_both(path: Path) -> tuple[str, float]:
    """Read and recover one file; returns what came of it and the longer time of the two.

    Processor time: what the file costs, not what else the machine is busy with.
    """
    start = time.process_time()
    try:
        read_mcap(path)
        outcome = "read"
    except TrueupError as error:
        outcome = "refused" if error.file and error.place else "refused without a place"
    middle = time.process_time()
    try:
        recover(path, path.with_suffix(".out"))
    except TrueupError as error:
        outcome += "" if error.file else ", recovery refused without a file"
    return outcome, max(middle - start, time.process_time() - middle)


def main(count: int, seed: int) -> None:
    """Run the hostile files and `count` mutated ones."""
    rng = Random(seed)
    outcomes: Counter[str] = Counter()
    last: dict[str, str] = {}
    worst = (0.0, "")
    peaks: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = originals(folder)
        path = folder / "mutant.bin"
        start_mb = peak_megabytes()
        for label, raw in mutants(sources, rng, count):
            path.write_bytes(raw)
            del raw
            try:
                outcome, spent_s = try_both(path)
            except Exception as error:
                outcome, spent_s = f"{label}: {type(error).__name__}: {error}", 0.0
            outcomes[outcome] += 1
            last[label] = outcome
            worst = max(worst, (spent_s, label))
            peaks[label] = peak_megabytes()
    report = {"outcomes": outcomes, "worst_s": worst, "start_mb": start_mb, "peak_mb": max(peaks.values())}
    print(json.dumps({**report, "peaks": peaks, "last": last}))


def mutants(sources: list[bytes], rng: Random, count: int) -> Iterator[tuple[str, bytes]]:
    """The mutated files first, because peak memory only ever grows and the hostile ones need the most."""
    for k in range(count):
        mutate = MUTATORS[k % len(MUTATORS)]
        yield mutate.__name__, mutate(rng.choice(sources), rng)
    yield from hostile()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
