"""The first compilation of a stranger's model happens in another process, so that it can only fail, not harm.

One helper process per Python process is started at the first use and ends with it (its input closes). It forks for
every trial, so a trial costs milliseconds. Verdicts are kept by content, so that a robot is tried once.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import struct
import subprocess
import sys
import threading
from typing import IO

from trueup.core.errors import TrueupError
from trueup.robot.foreign.compile_child import Job, Verdict

_LENGTH = struct.Struct(">I")
_KEPT_VERDICTS = 256


class CompileGuard:
    """Owns the helper process; `judge` may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._helper: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._verdicts: dict[bytes, Verdict] = {}

    def judge(self, job: Job) -> Verdict:
        """Try the job, or return what an equal one gave before."""
        key = _digest(job)
        with self._lock:
            verdict = self._verdicts.get(key)
            if verdict is None:
                verdict = self._ask(job)
                if len(self._verdicts) >= _KEPT_VERDICTS:
                    self._verdicts.pop(next(iter(self._verdicts)))
                if verdict.kind != "timeout":  # a busy machine may have more time later
                    self._verdicts[key] = verdict
        return verdict

    def start(self) -> None:
        """Start the helper now, so that it imports the engine while the caller reads files."""
        with self._lock:
            self._running()

    def close(self) -> None:
        """End the helper process."""
        helper, self._helper = self._helper, None
        if helper is not None and self._owner == os.getpid():
            assert helper.stdin is not None
            assert helper.stdout is not None
            helper.stdin.close()
            helper.stdout.close()
            helper.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        # After a fork of the caller the pipes belong to the parent: a child starts a helper of its own.
        if self._helper is None or self._owner != os.getpid() or self._helper.poll() is not None:
            environment = os.environ | {
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "OPENBLAS_NUM_THREADS": "1",
                "MALLOC_ARENA_MAX": "1",
            }
            command = [
                sys.executable,
                "-P",
                "-c",
                "from trueup.robot.foreign.compile_child import main; main()",
            ]
            self._helper = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            self._owner = os.getpid()
        return self._helper

    def _ask(self, job: Job) -> Verdict:
        helper = self._running()
        assert helper.stdin is not None
        assert helper.stdout is not None
        try:
            _send(job, helper.stdin)
            prefix = helper.stdout.read(_LENGTH.size)
            return Verdict(**json.loads(helper.stdout.read(_LENGTH.unpack(prefix)[0])))
        except (OSError, struct.error, ValueError) as error:
            helper.kill()
            self._helper = None
            raise TrueupError(f"the process that checks models ended unexpectedly: {error}") from None


def _send(job: Job, sink: IO[bytes]) -> None:
    xml = job.xml.encode()
    header = {
        "xml": len(xml),
        "assets": {name: len(data) for name, data in job.assets.items()},
        "submodels": {name: len(data) for name, data in job.submodels.items()},
        "dropped_meshes": job.dropped_meshes,
        "urdf": job.urdf,
        "repairs": job.repairs,
        "seconds": job.seconds,
        "wall_seconds": job.wall_seconds,
        "megabytes": job.megabytes,
    }
    text = json.dumps(header).encode()
    for part in (_LENGTH.pack(len(text)) + text, xml, *job.assets.values(), *job.submodels.values()):
        sink.write(part)
    sink.flush()


def _digest(job: Job) -> bytes:
    total = hashlib.blake2b(digest_size=32)
    for name, data in [("", job.xml.encode()), *job.assets.items(), *job.submodels.items()]:
        total.update(f"{len(name)} {name} {len(data)} ".encode())
        total.update(data)
    total.update(f"{job.dropped_meshes} {job.urdf} {job.repairs} {job.megabytes}".encode())
    return total.digest()


GUARD = CompileGuard()
atexit.register(GUARD.close)
