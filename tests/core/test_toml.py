"""TOML written by people: every failure names the file and the key, and none takes long."""

import time

import msgspec
import pytest

from trueup.core.errors import TrueupError
from trueup.core.toml import MAX_BYTES, parse_toml, read_toml


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
    with pytest.raises(TrueupError, match="small text file"):
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
