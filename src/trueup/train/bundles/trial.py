"""Opens an untrusted network in a guarded child process first, where it can only fail.

Our own reader has accepted the file before (sizes, operators, shapes, work). ONNX Runtime and torch are large C++
libraries with parsers and optimisers of their own: they read untrusted bytes here first, under limits on time and
memory, and again in this process only after that went well.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.guarded import GuardedProcess, GuardLimits
from trueup.policy.foreign.onnx_net import open_session
from trueup.policy.graph.net import GraphNet
from trueup.policy.graph.onnx_file import parse_onnx

_LIMITS = GuardLimits(cpu_s=30.0, memory_bytes=1 << 30, answer_bytes=80_000_000)
_TORCH_LIMITS = GuardLimits(cpu_s=120.0, memory_bytes=4 << 30, wall_s=300.0, answer_bytes=80_000_000)
_ROWS = 64
_MEMORY = ("hidden_state", "cell_state", "hidden_states")
_guard = GuardedProcess("trueup.train.bundles.trial:run_onnx", preload=("onnxruntime",))
_torch_guard = GuardedProcess("trueup.train.bundles.trial:convert", preload=("torch", "torch.onnx", "onnx"))


def try_onnx(data: bytes, file: Path) -> None:
    """Open and run a network in a child process; any failure is a TrueupError."""
    _guard.call({"data": data}, _LIMITS, file)


def run_onnx(request: dict[str, Any]) -> bool:
    """In the child: NumPy first, then ONNX Runtime, on observations that are zero."""
    graph = parse_onnx(request["data"], "network")
    net = GraphNet(graph, "network")
    GraphNet(graph, "network", 1, open_session(request["data"], "network"))(np.zeros((1, net.nobs), np.float32))
    return True


def torchscript_to_onnx(file: Path, data: bytes, nobs: int) -> tuple[bytes, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A TorchScript network as ONNX, with observations and torch's actions for comparison."""
    found = _torch_guard.call({"data": data, "nobs": nobs}, _TORCH_LIMITS, file)
    obs, action = (np.frombuffer(found[name], np.float32) for name in ("obs", "action"))
    return found["onnx"], obs.reshape(_ROWS, nobs), action.reshape(_ROWS, -1)


def convert(request: dict[str, Any]) -> dict[str, bytes]:
    """In the child: load, run, export; operator set 17, batch open."""
    import torch

    torch.set_num_threads(1)
    try:
        module = torch.jit.load(io.BytesIO(request["data"]), map_location="cpu").eval()  # type: ignore[no-untyped-call]
    except Exception as error:  # any exception of its reader
        raise TrueupError(f"is not a TorchScript network: {' '.join(str(error).split())[:200]}") from None
    kept = [name for name, _ in module.named_buffers() if name.rpartition(".")[2] in _MEMORY]
    if kept:
        raise TrueupError(f"keeps its memory inside ({kept[0]}): export it as ONNX with h_in and h_out")
    obs = np.random.default_rng(0).normal(size=(_ROWS, request["nobs"])).astype(np.float32)
    try:
        with torch.no_grad():
            rows = [module(torch.from_numpy(row[None])) for row in obs]
            again = module(torch.from_numpy(obs[:1]))
    except Exception as error:
        raise TrueupError(
            f"does not take {request['nobs']} observations: {str(error).splitlines()[-1][:200]}"
        ) from None
    if not isinstance(again, torch.Tensor):
        raise TrueupError("gives several outputs: save one that gives the actions alone")
    if not torch.equal(again, rows[0]):
        raise TrueupError("remembers its past inside: export it as ONNX with h_in and h_out")
    buffer: Any = io.BytesIO()  # accepted, although its type stub says otherwise
    torch.onnx.export(
        module,
        (torch.from_numpy(obs[:1]),),
        buffer,
        input_names=["obs"],
        output_names=["actions"],
        dynamic_axes={"obs": {0: "batch"}, "actions": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )
    return {"onnx": buffer.getvalue(), "obs": obs.tobytes(), "action": torch.cat(rows).numpy().tobytes()}
