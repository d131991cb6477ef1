"""Reads HDF5 and Parquet in a process of their own: their C libraries can crash or hang on damaged files.

One server process, started at first use, has the libraries loaded and forks a child for every file. The child
has limits on memory, processor time, file size and wall time; whatever happens to it, the caller gets a Table
or a TrueupError. Results come back through a temporary file: a JSON header and the columns as raw float64.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.tables.guard_server import WORD, answer
from trueup.data.tables.table import Table, allowed_bytes

_CPU_S = 0.7  # plus a second for every 20 MB of file


@dataclass
class Usage:
    """What the last guarded read cost: peak resident memory and processor time of the child, and how it ended."""

    peak_bytes: int = 0
    cpu_s: float = 0.0
    exit_status: int = 0


last_usage = Usage()


def read_guarded(kind: str, file: Path, wanted: Sequence[str] | None) -> Table:
    """Read a file with the reader of `kind` in a guarded child; in this process where there is no fork."""
    if not hasattr(os, "fork"):
        return answer(kind, file, wanted)
    with tempfile.TemporaryDirectory(prefix="trueup-") as folder:
        out = Path(folder) / "columns"
        size = file.stat().st_size
        request: dict[str, object] = {
            "kind": kind,
            "file": str(file.absolute()),
            "wanted": None if wanted is None else list(wanted),
            "out": str(out),
            "bytes": allowed_bytes(size),
            "cpu_s": _CPU_S + size / 20e6,
        }
        status = _server().ask(request, file)
        if status != 0 or not out.is_file():
            raise TrueupError(f"cannot be read: {_death(status)}", file=file)
        with out.open("rb") as stream:
            return _receive(stream, file)


def _death(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGPROF, -signal.SIGALRM):
        return "the reader did not end in time; the file is damaged or made to hang"
    if code < 0:
        return f"the reader crashed ({signal.Signals(-code).name}); the file is damaged"
    return "the reader ran out of memory or ended early; the file is damaged or asks for too much"


def _receive(stream: IO[bytes], file: Path) -> Table:
    length = int.from_bytes(stream.read(WORD), "little")
    header = json.loads(stream.read(length))
    if "error" in header:
        raise TrueupError(header["error"], file=file, place=header["place"])
    columns = {}
    for name, shape in header["columns"]:
        columns[name] = np.fromfile(stream, np.float64, int(np.prod(shape, dtype=np.int64))).reshape(shape)
    return Table(
        file=file,
        columns=columns,
        names=tuple(header["names"]),
        timestamps=tuple(header["timestamps"]),
        note=header["note"],
    )


class _Server:
    """The process that has the libraries loaded; one request at a time."""

    def __init__(self) -> None:
        source = str(Path(__file__).resolve().parents[3])
        paths = [source, os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from trueup.data.tables.guard_server import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours; the server ends when its input closes
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path for path in paths if path),
                "ARROW_DEFAULT_MEMORY_POOL": "system",  # others reserve address space: it counts
                "OMP_NUM_THREADS": "1",
            },
        )
        self.owner = os.getpid()
        self.lock = threading.Lock()
        atexit.register(self.close)

    def close(self) -> None:
        """End the server; a fork of the process that started it leaves it alone."""
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def ask(self, request: dict[str, object], file: Path) -> int:
        """Have one file read; return the child's wait status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with self.lock:
            try:
                self.process.stdin.write(json.dumps(request).encode() + b"\n")
                self.process.stdin.flush()
                reply = self.process.stdout.readline()
                answer = json.loads(reply)
            except BaseException as error:
                self.close()  # Ctrl-C between question and reply would leave the reply to the next question
                if not isinstance(error, (OSError, ValueError)):
                    raise
                raise TrueupError("cannot be read: the reading process ended; try again", file=file) from None
        last_usage.peak_bytes, last_usage.cpu_s = answer["peak_bytes"], answer["cpu_s"]
        last_usage.exit_status = answer["status"]
        return int(answer["status"])


_current: _Server | None = None
_starting = threading.Lock()


def _server() -> _Server:
    """Return the running server; a new one after a fork of this process or a death of the server."""
    global _current
    with _starting:
        if _current is None or _current.owner != os.getpid() or _current.process.poll() is not None:
            _current = _Server()
        return _current
