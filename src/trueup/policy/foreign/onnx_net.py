"""OnnxNet: a policy's network as an ONNX file, run on one CPU thread for one robot or many."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.foreign.yaml_file import read_bounded
from trueup.policy.normalizer import Float32

MAX_BYTES = 200_000_000
_ENDS = re.compile(r"(^|_)(in|out|prev|next|new)(_|$)")


class _State(NamedTuple):
    """A hidden state: the input and the output that carry it, and its shape with a batch of one."""

    source: str
    result: str
    shape: tuple[int, ...]
    batch: int | None  # axis of the rows; None: fixed


class OnnxNet:
    """actions = net(observations), for `nrow` rows; a recurrent net's hidden state begins at zero in every episode.

    A net whose batch is fixed at one is run row by row.
    """

    def __init__(self, path: str | Path, nrow: int = 1) -> None:
        self.file, self.nrow = Path(path), nrow
        self._session = _open(self.file)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if not inputs or not outputs:
            raise TrueupError("has no input or no output", file=self.file)
        self._input, self._output = inputs[0].name, outputs[0].name
        self.nobs, self.naction = self._width(inputs[0]), self._width(outputs[0])
        self._states = [self._state(part, outputs[1:]) for part in inputs[1:]]
        fixed = isinstance(inputs[0].shape[0], int) or any(state.batch is None for state in self._states)
        self._row_by_row = fixed or any(part.shape[0] == 1 for part in outputs[:1])
        self._hidden = [np.zeros((nrow, *state.shape), np.float32) for state in self._states]

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

    def _width(self, part: Any) -> int:
        """Columns of (batch, columns), and float32."""
        if part.type != "tensor(float)" or len(part.shape) != 2 or not isinstance(part.shape[1], int):
            raise TrueupError(
                f"{part.name!r} must be float32 (batch, columns), found {part.type} {part.shape}", file=self.file
            )
        return int(part.shape[1])

    def _state(self, part: Any, outputs: list[Any]) -> _State:
        """The hidden state that comes in as `part` and goes out under the same name with another end."""
        partners = [out for out in outputs if _stem(out.name) == _stem(part.name)]
        free = [axis for axis, size in enumerate(part.shape) if not isinstance(size, int)]
        if len(partners) != 1 or len(free) > 1 or part.type != "tensor(float)":
            raise TrueupError(
                f"input {part.name!r} {part.shape} is neither the observation nor a hidden state with an output "
                f"of its own (outputs: {', '.join(out.name for out in outputs) or 'the actions only'})",
                file=self.file,
            )
        shape = tuple(size if isinstance(size, int) else 1 for size in part.shape)
        return _State(part.name, partners[0].name, shape, free[0] if free else None)


def _stem(name: str) -> str:
    return _ENDS.sub(r"\1\3", name.lower()).strip("_")


def _open(file: Path) -> Any:
    """A session on one thread; the file must hold all of its weights itself."""
    import onnx
    import onnxruntime
    from onnx.external_data_helper import _get_all_tensors, uses_external_data

    data = read_bounded(file, MAX_BYTES, "a policy's network")
    try:
        outside = [
            tensor.name for tensor in _get_all_tensors(onnx.load_model_from_string(data)) if uses_external_data(tensor)
        ]
        if outside:  # would be read from wherever the name points to
            raise TrueupError(f"keeps {outside[0]!r} in another file; save the network as one file", file=file)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except TrueupError:
        raise
    except Exception as error:  # each package has families of its own, protobuf among them
        raise TrueupError(f"is not an ONNX network: {' '.join(str(error).split())[:300]}", file=file) from None
