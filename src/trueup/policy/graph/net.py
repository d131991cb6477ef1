"""GraphNet: actions of observations by a network in an ONNX file, for one robot or many, memory included."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.graph.onnx_file import FLOAT, OnnxGraph, Port
from trueup.policy.graph.run import NumpySession
from trueup.policy.normalizer import Float32
from trueup.policy.runner import Observed

_ENDS = re.compile(r"(^|_)(in|out|prev|next|new)(_|$)")


class GraphSession(Protocol):
    """Computes outputs by name from inputs by name."""

    def run(self, outputs: Sequence[str], feed: Mapping[str, NDArray[Any]]) -> Sequence[NDArray[Any]]: ...


class _State(NamedTuple):
    """A hidden state: the input and the output that carry it, and its shape with a batch of one."""

    source: str
    result: str
    shape: tuple[int, ...]
    batch: int | None  # axis of the rows; None: fixed


class GraphNet:
    """actions = net(observations), for `nrow` rows; a hidden state begins at zero in every episode.

    The first input is the observation (batch, nobs), the first output the action (batch, naction); further inputs are
    hidden states, each with an output of the same name but for its end (h_in, h_out). A net that cannot take several
    rows at once is run row by row. `session` None: NumPy runs it, and a batch that is fixed at one only on paper is
    not fixed. `rounding`: by which a row's actions may differ when others are computed beside it.
    """

    def __init__(
        self, graph: OnnxGraph, file: str | Path, nrow: int = 1, session: GraphSession | None = None, *,
        rounding: float = 1e-6,
    ) -> None:  # fmt: skip
        self.file, self.nrow, self.graph, self._rounding = file, nrow, graph, rounding
        self._session: GraphSession = NumpySession(graph, file)
        source, result = graph.inputs[0], graph.outputs[0]
        self._input, self._output = source.name, result.name
        self.nobs = self._width(source)
        self._states = [self._state(port) for port in graph.inputs[1:]]
        self._hidden = [np.zeros((nrow, *state.shape), np.float32) for state in self._states]
        self._fixed = source.shape[0] is not None
        self.naction = self._probe(np.zeros((1, self.nobs), np.float32)).shape[1]
        self._row_by_row = any(state.batch is None for state in self._states) or not self._takes_rows()
        if session is not None:
            self.use(session)

    @property
    def has_memory(self) -> bool:
        return bool(self._states)

    def use(self, session: GraphSession) -> None:
        """Use another session, which keeps to the batch size of the file."""
        self._session, self._row_by_row = session, self._row_by_row or self._fixed

    def __call__(self, obs: Float32) -> Float32:
        """Actions (n, naction) of observations (n, nobs); with a hidden state n must be `nrow`."""
        if obs.ndim != 2 or obs.shape[1] != self.nobs or (self._states and len(obs) != self.nrow):
            rows = self.nrow if self._states else "n"
            raise TrueupError(f"takes ({rows}, {self.nobs}) observations, found {obs.shape}", file=self.file)
        if self._row_by_row:
            return np.concatenate([self._run(obs[k : k + 1], slice(k, k + 1)) for k in range(len(obs))])
        return self._run(obs, slice(0, len(obs)))

    def restart(self, rows: NDArray[np.intp]) -> None:
        """Forget the hidden state of rows whose episode ended."""
        for hidden in self._hidden:
            hidden[rows] = 0.0

    def _run(self, obs: Float32, rows: slice) -> Float32:
        feed: dict[str, Float32] = {self._input: np.ascontiguousarray(obs, np.float32)}
        for state, hidden in zip(self._states, self._hidden, strict=True):
            feed[state.source] = hidden[rows][0] if state.batch is None else np.concatenate(hidden[rows], state.batch)
        action, *after = self._session.run([self._output, *(state.result for state in self._states)], feed)
        for state, hidden, values in zip(self._states, self._hidden, after, strict=True):
            hidden[rows] = values if state.batch is None else np.split(values, values.shape[state.batch], state.batch)
        if not np.isfinite(action).all():
            raise TrueupError("gave an action that is not finite", file=self.file)
        return np.asarray(action, np.float32)

    def _takes_rows(self) -> bool:
        """Whether a batch gives the same as its rows one by one."""
        rows = np.random.default_rng(0).normal(size=(3, self.nobs)).astype(np.float32)
        try:
            together, alone = self._probe(rows), np.concatenate([self._probe(row[None]) for row in rows])
        except TrueupError:
            return False
        return bool(np.allclose(together, alone, rtol=1e-5, atol=self._rounding))

    def _probe(self, obs: Float32) -> Float32:
        """Actions at the start of an episode, by NumPy; the shapes that come out must be those that go in."""
        rows, feed = len(obs), {self._input: obs}
        feed |= {state.source: np.zeros(_with_rows(state, rows), np.float32) for state in self._states}
        session = NumpySession(self.graph, self.file)
        action, *after = session.run([self._output, *(state.result for state in self._states)], feed)
        if action.ndim != 2 or len(action) != rows or action.dtype != np.float32:
            found = f"{action.dtype} {action.shape}"
            raise TrueupError(f"{self._output!r} must be float32 ({rows}, columns), found {found}", file=self.file)
        for state, values in zip(self._states, after, strict=True):
            if values.shape != _with_rows(state, rows):
                raise TrueupError(f"{state.result!r} has another shape than {state.source!r}", file=self.file)
        return np.asarray(action, np.float32)

    def _width(self, port: Port) -> int:
        """Columns of (batch, columns), and float32."""
        if port.kind != FLOAT or len(port.shape) != 2 or not port.shape[1] or port.shape[0] not in (None, 1):
            kind = "float32" if port.kind == FLOAT else f"type {port.kind}"
            shown = ["batch" if size is None else size for size in port.shape]
            raise TrueupError(f"{port.name!r} must be float32 (batch, columns), found {kind} {shown}", file=self.file)
        return port.shape[1]

    def _state(self, port: Port) -> _State:
        """The hidden state that comes in as `port` and goes out under the same name with another end."""
        outputs = self.graph.outputs[1:]
        partners = [out for out in outputs if _stem(out.name) == _stem(port.name)]
        free = [axis for axis, size in enumerate(port.shape) if size is None]
        if len(partners) != 1 or len(free) > 1 or port.kind != FLOAT or not port.shape:
            raise TrueupError(
                f"input {port.name!r} {list(port.shape)} is neither the observation nor a hidden state with an output "
                f"of its own (outputs: {', '.join(out.name for out in outputs) or 'the actions only'})",
                file=self.file,
            )
        if any(size is not None and not 0 < size <= 100_000 for size in port.shape):
            raise TrueupError(f"input {port.name!r} has the shape {list(port.shape)}", file=self.file)
        return _State(port.name, partners[0].name, tuple(size or 1 for size in port.shape), free[0] if free else None)


class GraphPolicy:
    """A network that acts on what the actor sees, a `Policy`; `restart` forgets the past of rows."""

    def __init__(self, net: GraphNet) -> None:
        self.net = net

    def __call__(self, obs: Observed) -> Float32:
        """Actions (n, naction) of an environment's observations."""
        return self.net(obs.actor)

    def act(self, actor: Float32) -> Float32:
        """Actions (n, naction) of what a robot sees (n, nactor)."""
        return self.net(actor)

    def restart(self, rows: NDArray[np.intp]) -> None:
        self.net.restart(rows)


def _with_rows(state: _State, rows: int) -> tuple[int, ...]:
    shape = list(state.shape)
    if state.batch is not None:
        shape[state.batch] = rows
    return tuple(shape)


def _stem(name: str) -> str:
    return _ENDS.sub(r"\1\3", name.lower()).strip("_")
