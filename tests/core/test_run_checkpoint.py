"""Checkpoints come back as they were, or not at all."""

import json

import numpy as np
import pytest

from trueup.core.checkpoint import Checkpoint, Checkpoints, read_checkpoint, write_checkpoint
from trueup.core.errors import TrueupError

ARRAYS = {
    "a/weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "counter": np.array([1, 2**63], np.uint64),
    "flag": np.array([True, False]),
    "scalar": np.array(0.1),
    "turned": np.arange(6.0).reshape(2, 3).T,
    "none": np.zeros((4, 0), np.float32),
}


def _checkpoint(k=0):
    return Checkpoint(arrays={**ARRAYS, "k": np.array(k)}, facts={"iteration": k})


def test_every_kind_of_array_comes_back_bit_for_bit(tmp_path):
    write_checkpoint(tmp_path / "one", _checkpoint(3))
    found = read_checkpoint(tmp_path / "one")
    assert found.facts == {"iteration": 3}
    for name, value in ARRAYS.items():
        assert (found.arrays[name].dtype, found.arrays[name].shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(found.arrays[name], value)


def test_two_generations_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for k in (1, 5, 9):
        checkpoints.save(k, _checkpoint(k))
    assert [path.name for path in checkpoints.folders()] == ["00000009", "00000005"]
    assert checkpoints.newest().facts["iteration"] == 9


@pytest.mark.parametrize("harm", ["cut", "flip", "no manifest", "no arrays", "torn manifest"])
def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_taken(tmp_path, harm):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, _checkpoint(1))
    folder = checkpoints.save(2, _checkpoint(2))
    arrays, manifest = folder / "arrays.safetensors", folder / "manifest.json"
    content = bytearray(arrays.read_bytes())
    if harm == "cut":
        arrays.write_bytes(content[:-5])
    elif harm == "flip":
        content[-3] ^= 1
        arrays.write_bytes(content)
    elif harm == "torn manifest":
        manifest.write_text(manifest.read_text()[:20])
    else:
        (manifest if harm == "no manifest" else arrays).unlink()
    with pytest.raises(TrueupError):
        read_checkpoint(folder)
    assert checkpoints.newest().facts["iteration"] == 1


def test_a_manifest_that_lies_about_its_kind_is_refused(tmp_path):
    folder = write_checkpoint(tmp_path / "one", _checkpoint())
    (folder / "manifest.json").write_text(json.dumps([1, 2]))
    with pytest.raises(TrueupError, match="not a whole checkpoint"):
        read_checkpoint(folder)


def test_no_checkpoint_is_none(tmp_path):
    assert Checkpoints(tmp_path / "nothing").newest() is None
