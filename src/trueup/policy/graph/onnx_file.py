"""OnnxGraph: an ONNX file as nodes, constants and ports, read under limits; files beyond them are refused.

The file holds everything itself: no external data, no functions, no sub-graphs (loops, branches), and only operators of
the allow-list (`allowed.ALLOWED`). The one reader for bundles and for files of others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.documents import read_bytes
from trueup.core.errors import TrueupError
from trueup.policy.graph import protobuf as pb
from trueup.policy.graph.allowed import ALLOWED

Array = NDArray[np.generic]
Attribute = float | int | str | Array | list[float] | list[int]
MAX_BYTES = 64_000_000
_MAX_NODES, _MAX_DIMS = 2000, 8
_OPSETS = (9, 22)
_TYPES = {1: "<f4", 6: "<i4", 7: "<i8", 9: "|b1", 11: "<f8"}
FLOAT = 1


@dataclass(frozen=True, kw_only=True)
class GraphNode:
    """One operator with the names of what goes in and out; "" stands for an input that is left out."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Attribute]

    @property
    def label(self) -> str:
        return f"{self.op} -> {', '.join(self.outputs)}"


@dataclass(frozen=True, kw_only=True)
class Port:
    """An input or output of the graph; a size that the file leaves open is None."""

    name: str
    kind: int  # ONNX's number of the type; 1: float32
    shape: tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class OnnxGraph:
    """Content of a file; `metadata` are its exporter's properties."""

    opset: int
    nodes: tuple[GraphNode, ...]
    constants: dict[str, Array]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    metadata: dict[str, str] = field(default_factory=dict)


def read_onnx(path: str | Path) -> OnnxGraph:
    """Read a file; every failure is a TrueupError that names it."""
    file = Path(path)
    return parse_onnx(read_bytes(file, MAX_BYTES, "policy's network"), file)


def parse_onnx(data: bytes, file: str | Path) -> OnnxGraph:
    """Read the content of a file; `file` is for messages."""
    if not data:
        raise TrueupError("is not an ONNX network: it is empty", file=file)
    try:
        graph = _model(memoryview(data))
    except (ValueError, IndexError, OverflowError) as error:
        raise TrueupError(f"is not an ONNX network: {str(error)[:300]}", file=file) from None
    unknown = [node.op for node in graph.nodes if node.op not in ALLOWED]
    if unknown:
        raise TrueupError(
            f"has the operator {unknown[0]!r}, which a policy may not have (it may: {', '.join(sorted(ALLOWED))})",
            file=file,
        )
    _check_names(graph, file)
    return graph


def _check_names(graph: OnnxGraph, file: str | Path) -> None:
    """Every name has one source, before its use; constants are finite."""
    known = {"", *graph.constants, *(port.name for port in graph.inputs)}
    for node in graph.nodes:
        for name in node.inputs:
            if name not in known:
                raise TrueupError(f"uses {name!r} before anything gives it", file=file, place=node.label)
        for name in node.outputs:
            if name and name in known:
                raise TrueupError(f"gives {name!r} twice", file=file, place=node.label)
            known.add(name)
    if not graph.inputs or not graph.outputs:
        raise TrueupError("has no input or no output", file=file)
    for port in graph.outputs:
        if port.name not in known:
            raise TrueupError(f"nothing gives its output {port.name!r}", file=file)
    for name, values in graph.constants.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise TrueupError(f"has numbers that are not finite in {name!r}", file=file)


def _model(data: memoryview) -> OnnxGraph:
    body, opset, metadata = None, 0, {}
    for number, value in pb.fields(data):
        if number == 7:
            body = pb.message(value)
        elif number == 8:
            found = dict(pb.fields(pb.message(value)))
            domain = pb.text(found.get(1, memoryview(b"")))
            if domain in ("", "ai.onnx"):
                opset = pb.signed(found.get(2, 0))
        elif number == 14:
            entry = dict(pb.fields(pb.message(value)))
            metadata[pb.text(entry.get(1, memoryview(b"")))] = pb.text(entry.get(2, memoryview(b"")))
        elif number == 25:
            raise ValueError("it defines functions of its own: save it without")
    if body is None:
        raise ValueError("it holds no graph")
    if not _OPSETS[0] <= opset <= _OPSETS[1]:
        raise ValueError(f"operator set {opset}; read are {_OPSETS[0]} to {_OPSETS[1]}")
    return _graph(body, opset, metadata)


def _graph(data: memoryview, opset: int, metadata: dict[str, str]) -> OnnxGraph:
    nodes: list[GraphNode] = []
    constants: dict[str, Array] = {}
    inputs, outputs = [], []
    for number, value in pb.fields(data):
        if number == 1:
            nodes.append(_node(pb.message(value)))
        elif number == 5:
            name, values = _tensor(pb.message(value))
            if name in constants:
                raise ValueError(f"it has the constant {name!r} twice")
            constants[name] = values
        elif number == 11:
            inputs.append(_port(pb.message(value)))
        elif number == 12:
            outputs.append(_port(pb.message(value)))
        elif number == 15:
            raise ValueError("it has sparse constants")
        if max(len(nodes), len(constants), len(inputs), len(outputs)) > _MAX_NODES:
            raise ValueError(f"a policy has at most {_MAX_NODES} operators and constants")
    given = tuple(port for port in inputs if port.name not in constants)  # old files list constants as inputs too
    return OnnxGraph(
        opset=opset, nodes=tuple(nodes), constants=constants, inputs=given, outputs=tuple(outputs), metadata=metadata
    )


def _node(data: memoryview) -> GraphNode:
    inputs, outputs, attributes, op = [], [], {}, ""
    for number, value in pb.fields(data):
        if number == 1:
            inputs.append(pb.text(value))
        elif number == 2:
            outputs.append(pb.text(value))
        elif number == 4:
            op = pb.text(value)
        elif number == 5:
            name, content = _attribute(pb.message(value))
            attributes[name] = content
        elif number == 7 and pb.text(value) not in ("", "ai.onnx"):
            raise ValueError(f"an operator of the domain {pb.text(value)!r}, which is unknown")
    return GraphNode(op=op, inputs=tuple(inputs), outputs=tuple(outputs), attributes=attributes)


def _attribute(data: memoryview) -> tuple[str, Attribute]:
    name, found, many = "", None, []  # type: str, Attribute | None, list[float] | list[int]
    for number, value in pb.fields(data):
        if number == 1:
            name = pb.text(value)
        elif number == 2:
            found = float(pb.floats(value)[0])
        elif number == 3:
            found = pb.signed(value)
        elif number == 4:
            found = bytes(pb.message(value)).decode("utf-8", "replace")
        elif number == 5:
            found = _tensor(pb.message(value))[1]
        elif number in (6, 10, 11, 22):
            raise ValueError("an operator holds a graph of its own (a loop or a branch), which a policy may not")
        elif number == 7:
            many = [*many, *(float(x) for x in pb.floats(value))]
        elif number == 8:
            many = [*many, *pb.integers(value)]
    return name, many if found is None else found


def _tensor(data: memoryview) -> tuple[str, Array]:
    dims: list[int] = []
    parts: list[Array] = []
    name, kind, raw = "", 0, None
    for number, value in pb.fields(data):
        if number == 1:
            dims += pb.integers(value)
        elif number == 2:
            kind = pb.signed(value)
        elif number in (4, 10):
            parts.append(pb.floats(value, "<f4" if number == 4 else "<f8"))
        elif number in (5, 7):
            parts.append(np.array(pb.integers(value), np.int64))
        elif number == 8:
            name = pb.text(value)
        elif number == 9:
            raw = value
        elif number == 13 or (number == 14 and value):
            raise ValueError(f"it keeps {name!r} in another file; save the network as one file")
        elif number in (3, 6, 11):
            raise ValueError(f"constant {name!r} is of a kind that is not read")
    if kind not in _TYPES:
        raise ValueError(f"constant {name!r} has the type {kind}, which is not read")
    if raw is not None:
        parts.append(pb.floats(raw, _TYPES[kind]))
    values = np.concatenate(parts) if parts else np.zeros(0)
    if len(dims) > _MAX_DIMS or any(size < 0 for size in dims) or math.prod(dims) != len(values):
        raise ValueError(f"constant {name!r} has {len(values)} numbers for the shape {tuple(dims)[: _MAX_DIMS + 1]}")
    return name, values.astype(_TYPES[kind]).reshape(dims)


def _port(data: memoryview) -> Port:
    name, kind, shape = "", 0, []  # type: str, int, list[int | None]
    for number, value in pb.fields(data):
        if number == 1:
            name = pb.text(value)
        elif number == 2:
            tensor = dict(pb.fields(pb.message(value))).get(1)
            if tensor is None:
                raise ValueError(f"{name!r} is not an array")
            for part, content in pb.fields(pb.message(tensor)):
                if part == 1:
                    kind = pb.signed(content)
                elif part == 2:
                    shape = [_size(pb.message(dim)) for field_, dim in pb.fields(pb.message(content)) if field_ == 1]
    return Port(name=name, kind=kind, shape=tuple(shape))


def _size(data: memoryview) -> int | None:
    value = dict(pb.fields(data)).get(1)
    return None if value is None else pb.signed(value)
