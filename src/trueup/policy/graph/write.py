"""OnnxWriter: builds an ONNX file operator by operator; fixed operator set, one file, constants inside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trueup._version import __version__
from trueup.policy.graph import protobuf as pb

OPSET, IR_VERSION = 17, 8
_FLOAT, _INT64 = 1, 7
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2


class OnnxWriter:
    """Nodes in the order of their computation; a size of None in a port's shape is the batch."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._ports: list[bytes] = []
        self._count = 0

    def port(self, name: str, shape: Sequence[int | None], *, out: bool = False) -> str:
        """Declare an input, or an output, of float32 numbers."""
        dims = b"".join(
            pb.bytes_field(1, pb.bytes_field(2, "batch") if size is None else pb.number_field(1, size))
            for size in shape
        )
        tensor = pb.number_field(1, _FLOAT) + pb.bytes_field(2, dims)
        info = pb.bytes_field(1, name) + pb.bytes_field(2, pb.bytes_field(1, tensor))
        self._ports.append(pb.bytes_field(12 if out else 11, info))
        return name

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        """Store numbers, as float32 or int64, in their natural shape."""
        kind, dtype = (_INT64, "<i8") if values.dtype.kind == "i" else (_FLOAT, "<f4")
        raw = np.ascontiguousarray(values, dtype).tobytes()
        dims = b"" if values.ndim == 0 else pb.packed_field(1, values.shape)
        self._constants.append(dims + pb.number_field(2, kind) + pb.bytes_field(8, name) + pb.bytes_field(9, raw))
        return name

    def add(self, op: str, inputs: Sequence[str], output: str | None = None, **attributes: float | int) -> str:
        """Add an operator with one output; returns the output's name."""
        self._count += 1
        output = output or f"{op.lower()}_{self._count}"
        parts = [pb.bytes_field(1, name) for name in inputs] + [pb.bytes_field(2, output), pb.bytes_field(4, op)]
        for name, value in attributes.items():
            is_int = isinstance(value, int)
            number = pb.number_field(3, value) if isinstance(value, int) else pb.float_field(2, value)
            kind = pb.number_field(20, _ATTRIBUTE_INT if is_int else _ATTRIBUTE_FLOAT)
            parts.append(pb.bytes_field(5, pb.bytes_field(1, name) + number + kind))
        self._nodes.append(b"".join(parts))
        return output

    def encode(self) -> bytes:
        """The file's content."""
        graph = b"".join(pb.bytes_field(1, node) for node in self._nodes) + pb.bytes_field(2, self._name)
        graph += b"".join(pb.bytes_field(5, constant) for constant in self._constants) + b"".join(self._ports)
        opset = pb.bytes_field(8, pb.number_field(2, OPSET))
        producer = pb.bytes_field(2, "trueup") + pb.bytes_field(3, __version__)
        return pb.number_field(1, IR_VERSION) + producer + pb.bytes_field(7, graph) + opset
