"""Files are whole or absent."""

import os
import signal
import subprocess
import sys
import time

import pytest

from trueup.core.errors import TrueupError
from trueup.core.files import make_folder, replacing, write_atomic


def test_a_place_that_cannot_be_written_is_an_error_for_the_user(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "a", tmp_path / "file" / "b" / "a", "/proc/nowhere/a"):
        with pytest.raises(TrueupError, match=f"{path}: cannot be written"):
            write_atomic(path, b"")
        with pytest.raises(TrueupError, match="cannot be written"):
            make_folder(path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(TrueupError, match="Is a directory"):
        write_atomic(tmp_path / "folder", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_what_the_writer_itself_gets_wrong_is_not_blamed_on_the_disk(tmp_path):
    with pytest.raises(ValueError, match="mine"), replacing(tmp_path / "a"):
        raise ValueError("mine")


def test_content_and_mode(tmp_path):
    file = write_atomic(tmp_path / "sub" / "a.txt", "hé")
    assert file.read_bytes() == "hé".encode()
    assert [p.name for p in file.parent.iterdir()] == ["a.txt"]


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    file = write_atomic(tmp_path / "a", b"old")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(TrueupError, match="a: cannot be written: disk"):
        write_atomic(file, b"new")
    assert file.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_kill_9_leaves_old_or_new(tmp_path):
    file = tmp_path / "a"
    old, new = b"o" * 300_000, b"n" * 300_000
    code = (
        "import sys; from pathlib import Path; from trueup.core.files import write_atomic\n"
        "i = 0\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    write_atomic(sys.argv[1], (b'o' if i % 2 else b'n') * 300_000); i += 1\n"
    )
    for k in range(6):
        process = subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(0.01 + 0.013 * k)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if file.exists():
            assert file.read_bytes() in (old, new)
