"""Mapping files: what they may say, and what is refused with the key."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trueup.core.documents import MAX_LINE
from trueup.core.errors import TrueupError
from trueup.data.mapping import Mapping, find_mapping, mapping_names, read_mapping
from trueup.robot.spec import read_spec

GOOD = """
schema = 1
name = "mine"
joints = ["hip", "knee"]

[[file]]
rate_hz = 100.0

[[file.signal]]
signal = "joint_pos"
columns = "q{i}"
unit = "deg"
"""


def read(folder: Path, text: str) -> Mapping:
    path = folder / "mine.toml"
    path.write_text(text)
    return read_mapping(path)


def test_shipped_mappings_are_found_by_name() -> None:
    assert {"go2_air", "so101"} <= set(mapping_names())
    for name in mapping_names():
        assert find_mapping(name).name == name


@pytest.mark.parametrize("name", ["go2_air", "so101"])
def test_shipped_mappings_name_the_joints_of_the_built_in_robot(name: str) -> None:
    mapping = find_mapping(name)
    zoo = Path(__file__).parents[2] / "src" / "trueup" / "robot" / "zoo"
    assert mapping.joints == read_spec(zoo / mapping.robot / "spec.toml").joint_names


def test_so101_jaw_spans_the_range_of_the_model() -> None:
    mapping = find_mapping("so101")
    entry = mapping.files[0].signals[0]
    assert isinstance(entry.scale, tuple)
    assert isinstance(entry.offset, tuple)
    assert (entry.offset[5], entry.offset[5] + entry.scale[5]) == pytest.approx((-0.174533, 1.74533))


def test_mapping_is_found_by_path_and_a_wrong_name_is_helped(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(GOOD)
    assert find_mapping(tmp_path / "m.toml").name == "mine"
    with pytest.raises(TrueupError, match=r"did you mean 'go2_air'"):
        find_mapping("go2air")
    with pytest.raises(TrueupError, match="no mapping file"):
        find_mapping(tmp_path / "absent.toml")


def test_patterns_expand_by_number_and_joint(tmp_path: Path) -> None:
    plain = read(tmp_path, GOOD)
    assert plain.column_names(plain.files[0].signals[0]) == ("q0", "q1")
    picked = read(tmp_path, GOOD + "index = [7, 3]\n")
    assert picked.column_names(picked.files[0].signals[0]) == ("q7", "q3")
    named = read(tmp_path, GOOD.replace("q{i}", "{i}.{joint}"))
    assert named.column_names(named.files[0].signals[0]) == ("0.hip", "1.knee")


def test_patterns_are_no_format_strings(tmp_path: Path) -> None:
    mapping = read(tmp_path, GOOD.replace("q{i}", "{i}{i:>999999999}{joint.__class__}"))
    assert mapping.column_names(mapping.files[0].signals[0])[0] == "0{i:>999999999}{joint.__class__}"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 1", "schema = 2", "schema 2"),
        ("schema = 1", "schema = 1\nextra = 1", "unknown field `extra`"),
        ('unit = "deg"', 'unit = "deg"\nunits = "rad"', "unknown field `units`"),
        ('unit = "deg"', 'unit = "degrees"', "unknown unit 'degrees'"),
        ('unit = "deg"', "", "say the file's unit"),
        ('unit = "deg"', 'unit = "normalised"', "needs a scale"),
        ('unit = "deg"', 'unit = ["deg"]', "lists 1 entries for 2 columns"),
        ('unit = "deg"', 'unit = "deg"\nsign = 2', "sign is 1 or -1"),
        ('unit = "deg"', 'unit = "deg"\nscale = 0', "scale 0"),
        ('unit = "deg"', 'unit = "deg"\nscale = nan', "scale must be finite"),
        ('unit = "deg"', 'unit = "deg"\noffset = [0.0, inf]', "offset must be finite"),
        ('unit = "deg"', 'unit = "deg"\noffset = []', "empty list"),
        ('unit = "deg"', 'unit = "deg"\nindex = [-1, 0]', "index counts from 0"),
        ('unit = "deg"', 'unit = "deg"\njoints = ["hip", "kneee"]', "unknown joint 'kneee'.*'knee'"),
        ('unit = "deg"', 'unit = "deg"\njoints = ["hip"]', "joint 'knee' is not mapped"),
        ('unit = "deg"', 'unit = "deg"\nvalue = 1.0', "either `columns` or a constant"),
        ('columns = "q{i}"', "value = 1.0", "takes no unit"),
        ('"joint_pos"', '"joint_position"', "no signal 'joint_position'.*joint_pos"),
        ('"joint_pos"', '"imu_gyro"', "unknown unit"),
        ("rate_hz = 100.0", "", "either a \\[file.time\\] column or rate_hz"),
        ("rate_hz = 100.0", "rate_hz = 0", "rate_hz must lie"),
        ("rate_hz = 100.0", "rate_hz = nan", "rate_hz must lie"),
        ("rate_hz = 100.0", 'time = {column = "t", unit = "hours"}', "unknown unit 'hours'"),
        ("rate_hz = 100.0", 'time = {column = ["s", "n"], unit = ["s"]}', "2 columns but 1 units"),
        ("rate_hz = 100.0", 'rate_hz = 100.0\ndelimiter = ";;"', "one character"),
        ('["hip", "knee"]', '["hip", "hip"]', "listed twice"),
        ('"mine"', '"../mine"', "use letters"),
        ('"mine"', "5", "Expected `str`"),
        ('"mine"', f'"{"x" * 300}"', "length"),
    ],
)
def test_faults_are_refused_with_file_and_key(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(TrueupError, match=words) as caught:
        read(tmp_path, GOOD.replace(old, new))
    assert caught.value.file == str(tmp_path / "mine.toml")
    assert caught.value.place


def test_a_signal_mapped_twice_is_refused(tmp_path: Path) -> None:
    again = GOOD[GOOD.index("[[file.signal]]") :]
    with pytest.raises(TrueupError, match="hip is mapped twice"):
        read(tmp_path, GOOD + again)


def test_a_current_needs_the_torque_constant_as_its_scale(tmp_path: Path) -> None:
    text = GOOD.replace("joint_pos", "joint_torque").replace('"deg"', '"mA"')
    with pytest.raises(TrueupError, match="needs a scale in N m"):
        read(tmp_path, text)
    assert read(tmp_path, text + "scale = 0.1\n").files[0].signals[0].scale == 0.1


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 1900,
        "a" + ".a" * 50_000 + " = 1",
        "schema = " + "9" * 1900,
        "schema = 1e999",
        "\n".join("q" + ".a" * 980 + f"{k} = 1" for k in range(32)),
        "[[file]]\n" * 5000,
        "a = 1979-02-30",
        "= = =",
        '"\\ud800" = 1',
    ],
)
def test_hostile_toml_is_refused_in_time(tmp_path: Path, text: str) -> None:
    start = time.process_time()
    with pytest.raises(TrueupError):
        read(tmp_path, text)
    assert time.process_time() - start < 2.0


def test_mapping_that_is_no_small_text_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TrueupError, match="UTF-8"):
        read_mapping(path)
    path.write_text("#" * (MAX_LINE + 1))
    with pytest.raises(TrueupError, match="longer than 2000"):
        read_mapping(path)
    path.write_text("# \n" * 50_000)
    with pytest.raises(TrueupError, match="at most 64000 bytes"):
        read_mapping(path)
    with pytest.raises(TrueupError, match="is no regular file"):
        read_mapping(tmp_path)
