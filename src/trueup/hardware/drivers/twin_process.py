"""Starting and ending a twin in the background. The twin's code is never imported here: a child process runs it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from trueup.core.errors import TrueupError
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import Robot

START_S = 60.0  # longest start on a busy machine: imports, model
END_S = 3.0


class TwinProcess:
    """A twin in a process of its own, which ends with this object's `end` or with this process."""

    def __init__(self, robot: Robot, cfg: ServeCfg) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "trueup", "twin", "serve", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the driver, which damps first
        )
        self.pid = self._child.pid
        try:
            self.port = self._start(_order(robot, cfg))
        except BaseException:
            self.end()
            raise

    @property
    def is_running(self) -> bool:
        return self._child.poll() is None

    def last_words(self) -> str:
        """Return the end of what the child wrote to its standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        return self._errors.read().decode(errors="replace").strip()

    def end(self) -> None:
        """End the child and wait until it is gone."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        for push in (None, self._child.terminate, self._child.kill):
            if push is not None:
                push()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(END_S)
                break
        self._errors.close()

    def _start(self, order: bytes) -> int:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # a child that died at once is reported below
            self._child.stdin.write(order + b"\n")
            self._child.stdin.flush()
        if not select.select([self._child.stdout], [], [], START_S)[0]:
            raise TrueupError(f"the twin did not start within {START_S:g} s; is the machine overloaded?")
        try:
            answer = msgspec.json.decode(self._child.stdout.readline(), type=dict[str, Any])
        except msgspec.MsgspecError:
            raise TrueupError(f"the twin did not start: {self.last_words() or 'no reason given'}") from None
        if "error" in answer:
            raise TrueupError(answer["error"], file=answer["file"], place=answer["place"])
        return int(answer["port"])


def _order(robot: Robot, cfg: ServeCfg) -> bytes:
    model = str(robot.model_path.resolve())
    described = {"spec": robot.spec, "model_path": model, "built_in": robot.built_in, "options": robot.options}
    return msgspec.json.encode({"serve": replace(cfg, once=True), "robot": described})


def _environment() -> dict[str, str]:
    """Environment of the child: the same package, and no BLAS threads for its small arrays."""
    paths = [str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH", "")]
    python_path = os.pathsep.join(path for path in paths if path)
    return {**os.environ, "PYTHONPATH": python_path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
