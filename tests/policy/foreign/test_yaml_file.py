"""YAML of strangers: plain values come back, anything else is a refusal that names the file."""

import os

import numpy as np
import pytest
from made_policies import deploy_file, rl_sar_files

from trueup.core.errors import TrueupError
from trueup.policy.foreign.layout import read_layout
from trueup.policy.foreign.yaml_file import MAX_BYTES, MAX_DEPTH, read_yaml

SLICE = "a: !!python/object/apply:builtins.slice "


def written(folder, text):
    path = folder / "layout.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: [1, 2.5, x, null, true]", [1, 2.5, "x", None, True]),
        ("b: &b {c: 1}\na: *b", {"c": 1}),
        (SLICE + "[null, null, null]", None),
        ("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1), None),
    ],
)
def test_plain_values_come_back(tmp_path, text, found):
    values = read_yaml(written(tmp_path, text))
    assert values["a"] == found or (found is None and isinstance(values["a"], list))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (SLICE + "[0, 2, null]", r"only slice\(None\)"),
        (SLICE + "3", "not plain YAML"),
        ("a: !!map [1]", "not plain YAML"),
        ("a: !!set [1]", "not plain YAML"),
        ("a: !!int ''", "not plain YAML"),
        ("a: !!bool maybe", "not plain YAML"),
        ("a: !!timestamp soon", "not plain YAML"),
        ("a: !!float " + ":".join(["9"] * 400), "not plain YAML"),
        ("a: " + "9" * 5000, "not plain YAML"),
        ("? [a]\n: 1", "not plain YAML"),
        ("a: &a [*a]", "nested too deeply"),
        ("a: " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested too deeply"),
        (b"a: \xff\xfe", "not plain YAML"),
        ("1: 2", "mapping of names"),
        ("", "mapping of names"),
        ("#" * (MAX_BYTES + 1), f"at most {MAX_BYTES} bytes"),
    ],
)
def test_anything_else_is_refused_with_its_file(tmp_path, text, named):
    path = written(tmp_path, text)
    with pytest.raises(TrueupError, match=named) as refused:
        read_yaml(path)
    assert refused.value.file == str(path)


def test_a_folder_is_no_layout(tmp_path):
    with pytest.raises(TrueupError, match="no regular file"):
        read_yaml(tmp_path)


@pytest.mark.parametrize("write", [rl_sar_files, deploy_file])
def test_layouts_with_changed_bytes_are_read_or_refused(tmp_path, write):
    path, rng, refused = write(tmp_path), np.random.default_rng(0), 0
    plain = path.read_bytes()
    for _ in range(int(os.environ.get("TRUEUP_FUZZ", "60"))):
        data = bytearray(plain)
        for at in rng.integers(0, len(data), 3):
            data[at] = rng.choice(list(b"[]{}:-&*!'\"\n\t 09aZ\x00\xff"))
        path.write_bytes(bytes(data))
        try:
            layout = read_layout(path, joint_names=("a", "b", "c"))
        except TrueupError:
            refused += 1
        else:
            assert len(layout.kp) == 3
    assert refused > 10
