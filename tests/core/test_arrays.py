"""One hash for text, bytes and arrays."""

import hashlib

import numpy as np

from trueup.core.arrays import sha256_of, sha256_of_file


def test_parts_are_hashed_as_their_bytes_one_after_another(tmp_path):
    array = np.arange(6.0).reshape(2, 3)
    expected = hashlib.sha256(b"name" + array.tobytes()).hexdigest()
    assert sha256_of(["name", array]) == expected
    assert sha256_of([b"name", array.T.copy().T]) == expected  # memory layout does not matter
    path = tmp_path / "part"
    path.write_bytes(b"name" + array.tobytes())
    assert sha256_of_file(path) == expected
