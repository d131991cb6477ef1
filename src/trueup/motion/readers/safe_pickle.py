"""Pickles that hold plain data, read without running anything: joblib's form included.

A pickle is a program. This reader knows dictionaries, lists, text, numbers and NumPy arrays; every other name that a
file calls for is refused before it is looked up.
"""

from __future__ import annotations

import bz2
import collections
import io
import lzma
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from trueup.core.errors import TrueupError

MOST_BYTES = 500_000_000


class _ArrayInStream:
    """joblib's wrapper: the bytes of an array follow it in the file."""

    subclass: Any
    shape: tuple[int, ...]
    order: str
    dtype: np.dtype[Any]
    numpy_array_alignment_bytes: int | None = None

    def __setstate__(self, state: object) -> None:
        known = ("shape", "order", "dtype", "numpy_array_alignment_bytes")
        if not isinstance(state, dict):
            raise pickle.UnpicklingError("an array wrapper without its shape")
        for name in known:
            if name in state:
                setattr(self, name, state[name])

    def read(self, file: io.BufferedIOBase) -> np.ndarray[Any, Any]:
        if not isinstance(self.dtype, np.dtype) or self.dtype.hasobject:
            raise pickle.UnpicklingError("an array of objects, which are never read")
        count = int(np.prod(self.shape, dtype=np.int64)) if all(k >= 0 for k in self.shape) else -1
        if not 0 <= count * self.dtype.itemsize <= MOST_BYTES:
            raise pickle.UnpicklingError(f"an array of shape {self.shape}")
        if self.numpy_array_alignment_bytes is not None:
            file.read(int.from_bytes(file.read(1), "little"))
        data = file.read(count * self.dtype.itemsize)
        if len(data) < count * self.dtype.itemsize:
            raise pickle.UnpicklingError("the file ends within an array")
        order = "F" if self.order == "F" else "C"
        return np.frombuffer(data, self.dtype).reshape(self.shape, order=order).copy()  # type: ignore[call-overload]


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    """What pickles of Python 2 call to turn text into the bytes of an array."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes as {encoding!r}")
    return text.encode("latin1")


def _reconstruct(subtype: object, shape: tuple[int, ...], kind: object) -> np.ndarray[Any, Any]:
    """An empty array, filled by its state."""
    if subtype is not np.ndarray:
        raise pickle.UnpicklingError("an array of an unknown kind")
    return np.ndarray.__new__(np.ndarray, (0,), np.dtype("b"))


def _scalar(kind: np.dtype[Any], data: bytes) -> Any:
    if not isinstance(kind, np.dtype) or kind.hasobject:
        raise pickle.UnpicklingError("a number of an unknown kind")
    return np.frombuffer(data, kind, 1)[0]


def _plain_dtype(name: str, *flags: object) -> np.dtype[Any]:
    """dtype("f8", False, True) and the like; objects are refused."""
    kind = np.dtype(str(name))
    if kind.hasobject:
        raise pickle.UnpicklingError("an array of objects, which are never read")
    return kind


_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("_codecs", "encode"): _encoded,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _plain_dtype,
    ("joblib.numpy_pickle", "NumpyArrayWrapper"): _ArrayInStream,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
}


_Reader: Any = pickle._Unpickler


class _Unpickler(_Reader):  # type: ignore[misc]
    """Python's own reader in Python, since arrays of joblib stand within the stream that it reads."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_Reader.dispatch)

    def __init__(self, file: io.BufferedIOBase) -> None:
        super().__init__(file)
        self._source = file

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name}, which is no plain data")
        return _ALLOWED[module, name]

    def load_build(self) -> None:
        made = self.stack[-2]
        if isinstance(made, np.dtype):  # its byte order is in its name already
            self.stack.pop()
            return
        if not isinstance(made, _ArrayInStream | np.ndarray):
            raise pickle.UnpicklingError(f"a state for {type(made).__name__}")
        if isinstance(made, np.ndarray) and not isinstance(self.stack[-1][2], np.dtype):
            raise pickle.UnpicklingError("an array of an unknown kind")
        super().load_build()
        if isinstance(made, _ArrayInStream):
            self.stack[-1] = made.read(self._source)

    dispatch[pickle.BUILD[0]] = load_build


def read_pickle(path: Path) -> Any:
    """The plain data of a pickle or of a joblib file, compressed or not."""
    if path.stat().st_size > MOST_BYTES:
        raise TrueupError("is larger than 500 MB", file=path)
    try:
        return _Unpickler(io.BytesIO(_expanded(path.read_bytes()))).load()
    except pickle.UnpicklingError as error:
        raise TrueupError(
            f"asks for {error}: only dictionaries, lists, text, numbers and arrays are read. Where it was made, save "
            "its arrays with np.savez instead",
            file=path,
        ) from None
    except Exception as error:  # a cut or damaged program: anything may come
        raise TrueupError(
            f"is no pickle of plain data: {type(error).__name__}: {str(error)[:200]}", file=path
        ) from None


def _expanded(data: bytes) -> bytes:
    """Decompressed, by the first bytes."""
    for magic, opener in (
        (b"\x1f\x8b", lambda: zlib.decompressobj(31)),
        (b"x", lambda: zlib.decompressobj()),
        (b"BZh", bz2.BZ2Decompressor),
        (b"\xfd7zXZ", lzma.LZMADecompressor),
    ):
        if data.startswith(magic):
            made = opener()
            out: bytes = made.decompress(data, MOST_BYTES)
            return out
    return data
