"""Mutations of files: of their bytes, of their lines and numbers, and of what a container or a signed folder holds."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable

import numpy as np

Mutation = Callable[[bytearray, np.random.Generator], bytearray]


def flip_bits(data: bytearray, rng: np.random.Generator) -> bytearray:
    for _ in range(int(rng.integers(1, 9))):
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return data


def overwrite(data: bytearray, rng: np.random.Generator) -> bytearray:
    start, n = int(rng.integers(len(data))), int(rng.integers(1, 17))
    data[start : start + n] = rng.integers(0, 256, n, dtype=np.uint8).tobytes()
    return data


def extreme_number(data: bytearray, rng: np.random.Generator) -> bytearray:
    values = [
        b"\xff" * 8,
        b"\x00" * 8,
        b"\xff\xff\xff\x7f",
        b"\x00" * 7 + b"\x80",
        b"1e999",
        b"nan",
        b"\x01" + b"\0" * 7,
    ]
    value = values[int(rng.integers(len(values)))]
    start = int(rng.integers(len(data)))
    data[start : start + len(value)] = value
    return data


def cut(data: bytearray, rng: np.random.Generator) -> bytearray:
    return data[: int(rng.integers(len(data)))]


def remove(data: bytearray, rng: np.random.Generator) -> bytearray:
    start = int(rng.integers(len(data)))
    del data[start : start + int(rng.integers(1, 64))]
    return data


def repeat(data: bytearray, rng: np.random.Generator) -> bytearray:
    start, n = int(rng.integers(len(data))), int(rng.integers(1, 200))
    return data[:start] + data[start : start + n] * int(rng.integers(2, 50)) + data[start:]


def swap(data: bytearray, rng: np.random.Generator) -> bytearray:
    a, b = (int(x) for x in rng.integers(len(data), size=2))
    n = int(rng.integers(1, 32))
    data[a : a + n], data[b : b + n] = data[b : b + n], data[a : a + n]
    return data


def insert_text(data: bytearray, rng: np.random.Generator) -> bytearray:
    pieces = [
        b"\0",
        b"\xff",
        b'"',
        b",",
        b"\n",
        b"[",
        b"]",
        b"=",
        b"[[",
        b"{i}",
        b"1e999",
        b"NaN",
        b"-",
        b"'''",
        b"9" * 5000,
    ]
    start = int(rng.integers(len(data)))
    return data[:start] + pieces[int(rng.integers(len(pieces)))] + data[start:]


def change_lines(data: bytearray, rng: np.random.Generator) -> bytearray:
    """Drop, double or exchange whole lines: text that is still well formed."""
    lines = bytes(data).split(b"\n")
    a, b = (int(x) for x in rng.integers(len(lines), size=2))
    change = int(rng.integers(3))
    if change == 0:
        del lines[a]
    elif change == 1:
        lines.insert(b, lines[a])
    else:
        lines[a], lines[b] = lines[b], lines[a]
    return bytearray(b"\n".join(lines))


def change_number(data: bytearray, rng: np.random.Generator) -> bytearray:
    """Put another value where a number is."""
    found = list(re.finditer(rb"-?\d[\d.e+-]*", bytes(data)))
    if not found:
        return data
    match = found[int(rng.integers(len(found)))]
    values = [b"0", b"-1", b"1e308", b"-1e308", b"inf", b"nan", b"1e999", b"9" * 400, b"true", b'"rad"', b"[]", b"1_0"]
    return data[: match.start()] + values[int(rng.integers(len(values)))] + data[match.end() :]


BYTES: list[Mutation] = [flip_bits, overwrite, extreme_number, cut, remove, repeat, swap, insert_text]
TEXT: list[Mutation] = [change_lines, change_number, insert_text, remove, swap]
TEXT_FILES = (".csv", ".toml", ".json", ".jsonl", ".yaml", ".bvh")


def mutate(original: bytes, rng: np.random.Generator, mutations: list[Mutation] = BYTES, most: int = 3) -> bytes:
    """Mutate in one way to `most` ways, one after the other."""
    data = bytearray(original)
    for _ in range(int(rng.integers(1, most + 1))):
        data = mutations[int(rng.integers(len(mutations)))](data, rng)
        if not data:
            return b""
    return bytes(data)


def mutate_inside(ending: str, original: bytes, rng: np.random.Generator) -> bytes:
    """Mutate what a container holds and wrap it again with valid checksums; text by lines and numbers."""
    if ending == ".csv.gz":
        return gzip.compress(mutate(gzip.decompress(original), rng, TEXT))
    if ending == ".joblib":
        return zlib.compress(mutate(zlib.decompress(original), rng))
    if ending == ".npz":
        packed = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(original)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
            victim = int(rng.integers(len(old.namelist())))
            for k, name in enumerate(old.namelist()):
                content = old.read(name)
                # the first 128 bytes are the array's header: where damage matters
                new.writestr(name, mutate(content[:128], rng) + content[128:] if k == victim else content)
        return packed.getvalue()
    if ending not in TEXT_FILES:
        return mutate(original, rng)
    return mutate(original, rng, TEXT) if rng.integers(2) else mutate(original, rng, [change_number], most=1)
