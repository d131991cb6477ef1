"""TOML and JSON files and arrays: every failure names the file and the key, and none takes long."""

import time

import msgspec
import numpy as np
import pytest
import safetensors.numpy

from trueup.core.documents import (
    MAX_BYTES,
    parse_arrays,
    parse_json,
    parse_toml,
    read_arrays,
    read_json,
    read_toml,
    write_json,
)
from trueup.core.errors import TrueupError


class Thing(msgspec.Struct, forbid_unknown_fields=True):
    size: float
    parts: list[int] = []


def test_a_good_file_is_read(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("size = 1.5\nparts = [1, 2]\n")
    assert read_toml(file, Thing, "thing") == Thing(1.5, [1, 2])


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("size = 'x'", "Expected `float`", "$.size"),
        ("size = 1\nparts = [1, 'a']", "Expected `int`", "$.parts[1]"),
        ("size = 1\nsise = 2", "unknown field `sise`", "top level"),
        ("size = ", "not valid TOML", None),
        ("size = " + "9" * 1990, "not valid TOML|too large|out of range", None),
        ("x = " + "[" * 1900, "nested|TOML", None),
        ("a" + ".a" * 5000 + " = 1", "longer than", "line 1"),
    ],
)
def test_failures_name_file_and_place(text, message, place):
    started = time.process_time()
    with pytest.raises(TrueupError, match=message) as caught:
        parse_toml(text, Thing, "f.toml")
    assert caught.value.file == "f.toml"
    if place:
        assert caught.value.place == place
    assert time.process_time() - started < 2


def test_missing_large_and_binary_files(tmp_path):
    with pytest.raises(TrueupError, match="make one"):
        read_toml(tmp_path / "none.toml", Thing, "thing", "make one")
    (tmp_path / "large.toml").write_text("#" + "\n#" * MAX_BYTES)
    with pytest.raises(TrueupError, match="at most"):
        read_toml(tmp_path / "large.toml", Thing, "thing")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TrueupError, match="UTF-8"):
        read_toml(tmp_path / "binary.toml", Thing, "thing")


def test_the_slowest_file_allowed_is_still_quick():
    lines = [f"k{i}" + ".a" * 990 + " = 1" for i in range(MAX_BYTES // 2000)]
    started = time.process_time()
    with pytest.raises(TrueupError):
        parse_toml("\n".join(lines), Thing, "f.toml")
    assert time.process_time() - started < 2


def test_json_is_written_and_read_again_by_file_or_folder(tmp_path):
    file = write_json(tmp_path / "a.json", Thing(1.5, [1, 2]))
    assert read_json(file, Thing, "thing") == read_json(tmp_path, Thing, "thing", name="a.json") == Thing(1.5, [1, 2])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"schema": 3, "size": "x"}', "of schema 3, this version reads schema 2"),
        (b'{"size": 1}', "is not an apple.*schema"),
        (b'{"schema": 2, "size": 1, "sise": 2}', "is not an apple.*sise"),
        (b'{"schema": 2, "size": 1e999}', "is not an apple"),
        (b'{"schema": 2, "size": "\xff"}', "is not an apple"),
        (b'{"schema": 2, "parts": ' + b"[" * 100_000, "is not an apple"),
        (b"", "is not an apple"),
    ],
)
def test_json_of_another_kind_or_version_is_refused_by_name(content, message):
    class Apple(Thing, forbid_unknown_fields=True):
        schema: int = 2

    with pytest.raises(TrueupError, match=message) as caught:
        parse_json(content, Apple, "apple", "f.json", 2)
    assert caught.value.file == "f.json"
    assert len(str(caught.value)) < 400


def test_arrays_that_are_cut_or_none_are_refused_by_name(tmp_path):
    whole = safetensors.numpy.save({"a": np.arange(3.0)})
    (tmp_path / "a.safetensors").write_bytes(whole)
    assert read_arrays(tmp_path / "a.safetensors", "net")["a"].tolist() == [0.0, 1.0, 2.0]
    for content in (whole[:-1], b"", whole.replace(b"F64", b"X99")):
        with pytest.raises(TrueupError, match="is not a net"):
            parse_arrays(content, "net", "f")
