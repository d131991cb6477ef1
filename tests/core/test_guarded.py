"""The guarded process: whatever happens in the fork, the caller gets an answer or a TrueupError."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trueup.core.errors import TrueupError
from trueup.core.guarded import GuardedAnswer, GuardedProcess, GuardLimits, run_in_fork

LIMITS = GuardLimits(cpu_s=1.0, memory_bytes=64 << 20, wall_s=20.0)


def act(request: dict[str, Any]) -> Any:
    """What the tests below let a fork do."""
    wish = request["wish"]
    if wish == "echo":
        return request["value"]
    if wish == "refuse":
        raise TrueupError("says no", place="line 3")
    if wish == "raise":
        raise KeyError("absent")
    if wish == "allocate":
        return len(bytearray(request["value"]))
    if wish == "crash":
        os.kill(os.getpid(), signal.SIGTRAP)  # pytest reports a SIGSEGV even in a fork
    if wish == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if wish == "sleep":
        time.sleep(request["value"])
    if wish == "write":
        Path(request["value"]).write_bytes(b"x")
    if wish == "large":
        return bytes(request["value"])
    while wish == "burn":
        pass
    return os.listdir(".") if wish == "list" else None


@pytest.fixture(scope="module")
def process() -> Iterator[GuardedProcess]:
    started = GuardedProcess("test_guarded:act", preload=["no_such_module"])
    yield started
    started.close()


@pytest.fixture(autouse=True)
def _on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def fork(wish: str, value: object = None, **limits: Any) -> GuardedAnswer:
    merged = GuardLimits(**{name: getattr(LIMITS, name) for name in LIMITS.__struct_fields__} | limits)
    reply = run_in_fork(act, {"wish": wish, "value": value}, merged)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(reply), type=GuardedAnswer)


def test_a_value_comes_back_with_what_it_cost(process: GuardedProcess) -> None:
    value = {"bytes": b"\x00\xff", "list": [1, 2.5, None], "text": "Grüße"}
    assert process.call({"wish": "echo", "value": value}, LIMITS, Path("f")) == value
    assert 0.0 < process.last.cpu_s < 1.0


def test_an_error_of_the_function_is_told_about_the_file(process: GuardedProcess) -> None:
    with pytest.raises(TrueupError, match="says no") as caught:
        process.call({"wish": "refuse"}, LIMITS, Path("f.csv"))
    assert (caught.value.file, caught.value.place) == ("f.csv", "line 3")
    with pytest.raises(TrueupError, match="cannot be read: 'absent'"):
        process.call({"wish": "raise"}, LIMITS, Path("f.csv"))


@pytest.mark.parametrize(
    ("wish", "value", "limits", "kind", "message"),
    [
        ("burn", None, {"cpu_s": 0.2}, "cpu_time", "SIGPROF"),
        ("stop", None, {"wall_s": 0.3}, "wall_time", ""),
        ("sleep", 60.0, {"wall_s": 0.3}, "wall_time", ""),
        ("crash", None, {}, "crash", "SIGTRAP"),
        ("allocate", 8 << 30, {}, "memory", ""),
        ("large", 2 << 20, {}, "size", ""),
    ],
)
def test_every_death_of_the_fork_is_told_apart(
    wish: str, value: object, limits: dict[str, float], kind: str, message: str
) -> None:
    answer = fork(wish, value, **limits)
    assert (answer.kind, answer.message) == (kind, message)
    assert answer.cpu_s < 0.6


def test_a_fork_that_gets_no_processor_for_a_while_still_passes() -> None:
    assert fork("sleep", 0.7, cpu_s=0.3).kind == "ok"


def test_a_fork_writes_no_file(tmp_path: Path) -> None:
    answer = fork("write", str(tmp_path / "file"))
    assert answer.kind in ("error", "crash")
    assert not (tmp_path / "file").exists() or not (tmp_path / "file").read_bytes()


def test_the_server_works_in_a_folder_that_does_not_exist(process: GuardedProcess) -> None:
    assert process.call({"wish": "list"}, LIMITS, Path("f")) == []


def test_a_dead_server_is_started_again(process: GuardedProcess) -> None:
    process.start()
    assert process._server is not None
    process._server.kill()
    process._server.wait()
    assert process.call({"wish": "echo", "value": 1}, LIMITS, Path("f")) == 1


def test_the_death_of_the_server_during_a_request_is_an_error(process: GuardedProcess) -> None:
    process.start()
    server = process._server
    assert server is not None
    assert server.stdin is not None
    server.stdin.write((5).to_bytes(8, "little") + b"\xc1\xc1\xc1\xc1\xc1")  # not MessagePack: the server raises
    with pytest.raises(TrueupError, match="ended unexpectedly"):
        process.ask({"wish": "echo", "value": 1}, LIMITS)
    assert process.call({"wish": "echo", "value": 2}, LIMITS, Path("f")) == 2
