"""Stage: inputs, commands and outputs of one step of the loop; and its runner, which skips, continues and records it.

A stage's commands are separate processes (`trueup VERB ...`), so that a crash does not end the loop, output is kept,
and each can resume after a kill. A stage whose request (config and inputs) is unchanged and whose
outputs are intact is skipped.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from trueup._version import __version__
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.loop.fingerprint import fingerprint
from trueup.loop.workspace import LOG, TIMES, StageManifest, Times, Workspace, request_hash

_POLL_S, _TELL_S = 0.2, 10.0
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


@dataclass(frozen=True, kw_only=True)
class StageCommand:
    """One process: `python -m` and these words.

    ok     exit codes that are results, not failures
    last   exit codes after which the stage's other commands are left out: a rung that was not passed
    """

    words: tuple[str, ...]
    ok: tuple[int, ...] = (0,)
    last: tuple[int, ...] = ()


def verb(*words: object, ok: tuple[int, ...] = (0,), last: tuple[int, ...] = ()) -> StageCommand:
    """A verb of the command line."""
    return StageCommand(words=("trueup.cli", *map(str, words)), ok=ok, last=last)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of a round.

    after      stages whose outputs are its inputs, as (round, name)
    config     what else decides its outcome
    commands   its commands, given its folder: those that can resume get --resume
    outputs    files that depend on the request alone, as glob patterns within its folder
    budget_s   expected duration
    absent     why it cannot be done here; this is recorded, and later stages run without it
    """

    name: str
    round: int
    after: tuple[tuple[int, str], ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    commands: Callable[[Path], Sequence[StageCommand]] = lambda folder: ()
    outputs: tuple[str, ...] = ()
    budget_s: float = 60.0
    absent: str = ""


Told = Literal["skipped", "begins", "runs", "done"]
Tell = Callable[[Stage, Told, float, str], None]


def run_stage(workspace: Workspace, stage: Stage, tell: Tell) -> StageManifest:
    """Run a stage, or skip it; a command that fails is a TrueupError with the end of its output."""
    request = _request(workspace, stage)
    found = workspace.manifest(stage.round, stage.name)
    if found is not None and found.request == request_hash(request) and workspace.intact(found):
        tell(stage, "skipped", 0.0, "")
        return found
    tell(stage, "begins", 0.0, "")
    folder = workspace.begin(stage.round, stage.name, request)
    (folder / "manifest.json").unlink(missing_ok=True)
    codes = tuple(_run_all(workspace, stage, folder, tell))
    files = sorted({one for pattern in stage.outputs for one in folder.glob(pattern)})
    manifest = StageManifest(
        stage=stage.name,
        round=stage.round,
        request=request_hash(request),
        config=request["config"],
        inputs=request["inputs"],
        outputs={str(one.relative_to(folder)): fingerprint(one) for one in files},
        codes=codes,
        note=stage.absent,
    )
    done = workspace.finish(manifest)
    tell(stage, "done", workspace.times(stage.round, stage.name).seconds, "")
    return done


def _request(workspace: Workspace, stage: Stage) -> dict[str, Any]:
    inputs = {}
    for round_, name in stage.after:
        parent = workspace.manifest(round_, name)
        if parent is None:
            raise TrueupError(f"stage {stage.name!r} needs {name!r} of round {round_}, which is not done")
        inputs[f"round-{round_}/{name}"] = parent.hash
    return {
        "stage": stage.name,
        "config": stage.config | {"absent": stage.absent},
        "inputs": inputs,
        "version": __version__,
    }


def _run_all(workspace: Workspace, stage: Stage, folder: Path, tell: Tell) -> list[int]:
    codes: list[int] = []
    if stage.absent:
        return codes
    for command in stage.commands(folder):
        code = _run(workspace, stage, folder, command, tell)
        codes.append(code)
        if code in command.last:
            break
        if code not in command.ok:
            said = _complaint((folder / LOG).read_text(errors="replace"))
            told = f"stage {stage.name!r} of round {stage.round} failed with exit code {code}: {said}"
            raise TrueupError(f"{told}; the same command goes on from here", file=folder / LOG)
    return codes


def _complaint(printed: str) -> str:
    """Why a command failed: its own last word if it had one, else the end of what it printed."""
    lines = [line.strip() for line in printed.strip().splitlines()]
    last = lines[-1] if lines else ""
    return last.removeprefix("trueup: ") if last.startswith("trueup: ") else " | ".join(lines[-3:])


def _run(workspace: Workspace, stage: Stage, folder: Path, command: StageCommand, tell: Tell) -> int:
    """One process to its end; its output goes to the stage's log, its time to times.json."""
    before, started, began = workspace.times(stage.round, stage.name), time.monotonic(), _cpu_s()
    stamp = before.started or datetime.now(UTC).isoformat(timespec="seconds")
    with (folder / LOG).open("ab") as log:
        log.write(f"\n$ python -m {' '.join(command.words)}\n".encode())
        log.flush()
        child = subprocess.Popen(
            [sys.executable, "-m", *command.words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with_parent,
            env=os.environ | {"COLUMNS": "150"},
        )
        try:
            _watch(stage, folder, child, before.seconds, tell)
        except BaseException:  # Ctrl-C reaches the child too; it saves and ends
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGINT)
            child.wait()
            raise
        finally:
            times = Times(
                started=stamp,
                seconds=before.seconds + time.monotonic() - started,
                cpu_seconds=before.cpu_seconds + _cpu_s() - began,
                parts=before.parts + 1,
            )
            write_atomic(folder / TIMES, msgspec.json.encode(asdict(times)))
    return child.returncode


def _watch(stage: Stage, folder: Path, child: subprocess.Popen[bytes], before_s: float, tell: Tell) -> None:
    started = told = time.monotonic()
    while child.poll() is None:
        time.sleep(_POLL_S)
        now = time.monotonic()
        if now - told >= _TELL_S:
            told = now
            tell(stage, "runs", before_s + now - started, _last_line(folder / LOG))


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2000))
        lines = file.read().decode(errors="replace").replace("\r", "\n").strip().splitlines()
    said = [line.strip() for line in lines if line.strip() and not line.startswith("$ ")]
    return said[-1] if said else ""


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _die_with_parent() -> None:
    """End a stage with its killed loop; where the system cannot do that, the lock still warns."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
