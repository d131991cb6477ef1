"""One guarded child process: runs a function on untrusted data, so that it can only fail, not harm.

C libraries may crash, hang or allocate without bound on hostile input. `GuardedProcess` starts a server that imports
such a library once and forks for every request, so that a request costs milliseconds. The fork has limits on processor
time, time on the clock, memory and the size of its answer, may write no file, and works in a folder that no longer
exists. Requests and answers are MessagePack, never pickle: what comes out of the fork is not trusted either.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from trueup.core.errors import TrueupError

Function = Callable[[Any], Any]
_WORD = 8  # bytes of a message's length
_FORKS = hasattr(os, "fork")
_ENDINGS = {
    "memory": "it asks for more memory than a file of its size may; the file is damaged or too large",
    "cpu_time": "its reader did not end in time; the file is damaged or made to hang",
    "wall_time": "its reader did not end in time; the file is damaged or made to hang",
    "size": "more comes out of it than a file of its size may hold",
    "crash": "its reader crashed ({message}); the file is damaged",
    "error": "{message}",
}


class GuardLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one request; memory_bytes is counted above the server's own memory."""

    cpu_s: float
    memory_bytes: int
    wall_s: float = 60.0  # for a fork that waits without computing: a busy machine must not refuse a good file
    answer_bytes: int = 1 << 20


class GuardedAnswer(msgspec.Struct, kw_only=True):
    """How a request ended.

    kind        ok; refused: the function raised a TrueupError; error: it raised another exception; or how the fork died
    value       what the function returned
    message     of the exception, or the name of the signal
    cpu_s       processor time of the fork
    peak_bytes  memory of the fork above the server's own
    """

    kind: Literal["ok", "refused", "error", "memory", "cpu_time", "wall_time", "size", "crash"]
    value: Any = None
    message: str = ""
    place: str | None = None
    cpu_s: float = 0.0
    peak_bytes: int = 0


class _Unread(GuardedAnswer):
    """An answer whose value only the caller decodes."""

    value: msgspec.Raw = msgspec.Raw(msgspec.msgpack.encode(None))


class GuardedProcess:
    """A server for one function, started at the first request and again after its death; for use by any thread.

    function  "module:name"; takes and returns what MessagePack holds (arrays as bytes)
    preload   modules to import before the first fork; one that is not installed is passed over
    """

    def __init__(self, function: str, *, preload: Sequence[str] = ()) -> None:
        self._function, self._preload = function, list(preload)
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self.last = GuardedAnswer(kind="ok")
        atexit.register(self.close)

    def start(self) -> None:
        """Start the server now, so that it imports its modules while the caller does other work."""
        if _FORKS:
            with self._lock:
                self._running()

    def call(self, request: object, limits: GuardLimits, file: Path) -> Any:
        """Return what the function returns; every other ending is a TrueupError about `file`."""
        try:
            answer = self.ask(request, limits)
        except TrueupError as error:
            raise TrueupError(error.message, file=file) from None
        if answer.kind == "refused":
            raise TrueupError(answer.message, file=file, place=answer.place)
        if answer.kind != "ok":
            reason = _ENDINGS[answer.kind].format(message=answer.message)
            raise TrueupError(f"cannot be read: {reason}", file=file)
        return answer.value

    def ask(self, request: object, limits: GuardLimits) -> GuardedAnswer:
        """Run the function on a request in a fork of the server (in this process where there is no fork)."""
        if not _FORKS:
            return _run(_find(self._function), request)
        with self._lock:
            server = self._running()
            assert server.stdin is not None
            assert server.stdout is not None
            try:
                _send(server.stdin, (limits, request))
                answer = msgspec.msgpack.decode(_receive(server.stdout) or b"", type=GuardedAnswer)
            except BaseException as error:
                self.close()  # Ctrl-C between request and reply would leave the reply to the next request
                if not isinstance(error, (OSError, msgspec.DecodeError)):
                    raise
                raise TrueupError("the guarded process ended unexpectedly; try again") from None
        self.last = answer
        return answer

    def close(self) -> None:
        """End the server, also under a request that waits; a fork of the process that started it leaves it alone."""
        server, self._server = self._server, None
        if server is not None and self._owner == os.getpid():
            server.kill()
            server.wait()
            for pipe in (server.stdin, server.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def _running(self) -> subprocess.Popen[bytes]:
        # after a fork of the caller the pipes belong to the parent: the fork starts a server of its own
        if self._server is None or self._owner != os.getpid() or self._server.poll() is not None:
            code = "import sys; from trueup.core.guarded import serve; serve(*sys.argv[1:])"
            own = {
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "OPENBLAS_NUM_THREADS": "1",
                "OMP_NUM_THREADS": "1",
                "MALLOC_ARENA_MAX": "1",
                "ARROW_DEFAULT_MEMORY_POOL": "system",  # others reserve address space: it counts as memory
            }
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-c", code, self._function, *self._preload],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is the caller's; the server ends when its input closes
                env=os.environ | own,
            )
            self._owner = os.getpid()
        return self._server


def serve(function: str, *preload: str) -> None:
    """The server: answer requests on the standard streams until the input closes."""
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    for module in preload:
        with contextlib.suppress(ImportError):  # the caller has checked for the one that it needs
            importlib.import_module(module)
    run = _find(function)
    with tempfile.TemporaryDirectory() as folder:  # after the imports: torch's own need a folder that exists
        os.chdir(folder)
    while (data := _receive(sys.stdin.buffer)) is not None:
        limits, request = msgspec.msgpack.decode(data)
        del data
        _send(sink, run_in_fork(run, request, msgspec.convert(limits, GuardLimits)))


def _find(function: str) -> Function:
    module, _, name = function.partition(":")
    found: Function = getattr(importlib.import_module(module), name)
    return found


def _send(sink: IO[bytes], message: object) -> None:
    data = msgspec.msgpack.encode(message)
    sink.write(len(data).to_bytes(_WORD, "little"))
    sink.write(data)
    sink.flush()


def _receive(source: IO[bytes]) -> bytes | None:
    head = source.read(_WORD)
    return source.read(int.from_bytes(head, "little")) if len(head) == _WORD else None


def run_in_fork(run: Function, request: Any, limits: GuardLimits) -> _Unread:
    """Run a function in a fork of this process under limits."""
    before = _memory()[1]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _limited(run, request, limits, writer)
    os.close(writer)
    data, death = _read_answer(reader, limits)
    if death:
        os.kill(child, signal.SIGKILL)
    os.close(reader)
    _, status, usage = os.wait4(child, 0)
    if death:
        answer = _Unread(kind=death)
    elif os.WIFSIGNALED(status):
        number = signal.Signals(os.WTERMSIG(status))
        is_time = number in (signal.SIGPROF, signal.SIGXCPU)
        answer = _Unread(kind="cpu_time" if is_time else "crash", message=number.name)
    else:
        try:
            answer = msgspec.msgpack.decode(data, type=_Unread)
        except msgspec.DecodeError:  # no whole answer, and yet no signal: nothing was left to encode it with
            answer = _Unread(kind="memory")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) - before
    answer.cpu_s, answer.peak_bytes = usage.ru_utime + usage.ru_stime, max(0, peak)
    return answer


def _limited(run: Function, request: Any, limits: GuardLimits, writer: int) -> None:
    """In the fork: set the limits, run, answer, and exit without exit handlers."""
    import resource

    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        seconds = math.ceil(limits.cpu_s) + 1  # in whole seconds only: the timer is the sharper limit
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        space = _memory()[0]
        if space:
            resource.setrlimit(resource.RLIMIT_AS, (space + limits.memory_bytes,) * 2)
        # the timer's signal keeps its default action, which ends the process even inside a C loop
        signal.setitimer(signal.ITIMER_PROF, limits.cpu_s)
        # the server enforces wall_s; this one is for the death of the server
        signal.setitimer(signal.ITIMER_REAL, 2 * limits.wall_s)
        with os.fdopen(writer, "wb") as stream:
            stream.write(msgspec.msgpack.encode(_run(run, request)))
    finally:
        os._exit(0)


def _run(run: Function, request: Any) -> GuardedAnswer:
    try:
        return GuardedAnswer(kind="ok", value=run(request))
    except TrueupError as error:
        return GuardedAnswer(kind="refused", message=error.message, place=error.place)
    except MemoryError:
        return GuardedAnswer(kind="memory")
    except Exception as error:  # any exception of a library on damaged data
        text = " ".join(str(error).split())[:2000]
        return GuardedAnswer(kind="error", message=text or type(error).__name__)


def _read_answer(reader: int, limits: GuardLimits) -> tuple[bytes, Literal["", "wall_time", "size"]]:
    """The fork's output until it ends, and the limit it was killed for."""
    deadline = time.monotonic() + limits.wall_s
    data = bytearray()
    while len(data) <= limits.answer_bytes:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return b"", "wall_time"
        part = os.read(reader, 1 << 20)
        if not part:
            return bytes(data), ""
        data += part
    return b"", "size"


def _memory() -> tuple[int, int]:
    """Bytes of address space, and of memory that a fork inherits (files are mapped anew when touched)."""
    try:
        words = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0, 0
    space, resident, shared = (int(word) * os.sysconf("SC_PAGESIZE") for word in words[:3])
    return space, resident - shared
