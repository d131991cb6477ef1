"""The process that `guarded` starts: has the C libraries loaded and forks a child with limits for every file.

A request is a line of JSON on the input, the reply a line of
JSON on the output, the columns go to the file that the request names.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.tables.table import MIB, Table

WORD = 8  # bytes of the header's length
_READERS = {
    "parquet": ("trueup.data.tables.read_parquet", "load_parquet"),
    "hdf5": ("trueup.data.tables.read_hdf5", "load_hdf5"),
}
_WALL_FACTOR = 8.0  # a busy machine may give the child an eighth of a core
_SPARE_BYTES = 160 * MIB


def main() -> None:
    """Serve requests until the input closes."""
    for module in ("h5py", "pyarrow.parquet", "pyarrow.compute", *(name for name, _ in _READERS.values())):
        with contextlib.suppress(ImportError):  # the caller has checked for the one it needs
            importlib.import_module(module)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _child(request)
        _, status, usage = os.wait4(child, 0)
        scale = 1 if sys.platform == "darwin" else 1024
        cpu_s = usage.ru_utime + usage.ru_stime
        reply = {"status": status, "peak_bytes": usage.ru_maxrss * scale, "cpu_s": cpu_s}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def _child(request: dict[str, Any]) -> None:
    """Read one file under limits, write the outcome, end without any clean-up of libraries."""
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        _limit(int(request["bytes"]), float(request["cpu_s"]))
        outcome: Table | TrueupError
        try:
            outcome = answer(request["kind"], Path(request["file"]), request["wanted"])
        except TrueupError as error:
            outcome = error
        with open(request["out"], "wb") as stream_out:
            _send(outcome, stream_out)
        code = 0
    finally:
        os._exit(code)


def _limit(allowed: int, cpu_s: float) -> None:
    import resource

    pages = Path("/proc/self/statm")
    if pages.exists():
        now = int(pages.read_text().split()[0]) * resource.getpagesize()
        memory = now + 2 * allowed + _SPARE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    written = allowed + 64 * MIB
    resource.setrlimit(resource.RLIMIT_FSIZE, (written, written))
    # the timers' signals keep their default action, which ends the process even inside a C loop
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, cpu_s * _WALL_FACTOR)


def answer(kind: str, file: Path, wanted: Sequence[str] | None) -> Table:
    """Read a file with the reader of `kind`; whatever the library raises becomes a TrueupError."""
    module, function = _READERS[kind]
    try:
        table = getattr(importlib.import_module(module), function)(file, wanted)
    except TrueupError:
        raise
    except MemoryError:
        raise TrueupError("asks for more memory than a file of its size may", file=file) from None
    except Exception as error:  # whatever the C library reports
        text = " ".join(str(error).split())[:300]
        raise TrueupError(
            f"is not a readable {kind} file: {text or type(error).__name__}", file=file
        ) from error
    assert isinstance(table, Table)
    return table


def _send(outcome: Table | TrueupError, stream: IO[bytes]) -> None:
    if isinstance(outcome, TrueupError):
        header: dict[str, object] = {"error": outcome.message, "place": outcome.place}
        arrays = []
    else:
        arrays = list(outcome.columns.values())
        header = {
            "columns": [(name, values.shape) for name, values in outcome.columns.items()],
            "names": outcome.names,
            "timestamps": outcome.timestamps,
            "note": outcome.note,
        }
    text = json.dumps(header).encode()
    stream.write(len(text).to_bytes(WORD, "little") + text)
    for values in arrays:
        np.ascontiguousarray(values).tofile(stream)
