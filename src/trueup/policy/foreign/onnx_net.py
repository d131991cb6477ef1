"""OnnxNet: a foreign policy's ONNX network, run by ONNX Runtime on one thread for one robot or many.

Our own reader opens the file first: sizes, operators and shapes are known before the runtime sees a byte.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trueup.core.documents import read_bytes
from trueup.core.errors import TrueupError
from trueup.policy.graph.net import GraphNet
from trueup.policy.graph.onnx_file import MAX_BYTES, parse_onnx


class OnnxNet(GraphNet):
    """A GraphNet that ONNX Runtime computes."""

    def __init__(self, path: str | Path, nrow: int = 1) -> None:
        data = read_bytes(Path(path), MAX_BYTES, "policy's network")
        super().__init__(parse_onnx(data, path), path, nrow)
        self.use(open_session(data, path))


def open_session(data: bytes, file: str | Path) -> Any:
    """A session of ONNX Runtime on one thread, of a file that `parse_onnx` accepts and NumPy has run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime has exception families of its own
        raise TrueupError(f"is not an ONNX network: {' '.join(str(error).split())[:300]}", file=file) from None
