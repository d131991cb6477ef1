"""Arrays: names of their types that every folder uses, and hashes of arrays, text and files.

Hashes identify the inputs of an artifact or of a resumed computation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Ids = NDArray[np.intp]
Mask = NDArray[np.bool_]


def sha256_of(parts: Iterable[str | bytes | NDArray[np.generic]]) -> str:
    """SHA-256 of parts one after another, as hexadecimal text."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            part = np.ascontiguousarray(part).tobytes()
        digest.update(part.encode() if isinstance(part, str) else part)
    return digest.hexdigest()


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file's content, as hexadecimal text."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
