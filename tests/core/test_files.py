"""Files are whole or absent."""

import os
import signal
import subprocess
import sys
import time

import pytest

from trueup.core.files import write_atomic


def test_content_and_mode(tmp_path):
    file = write_atomic(tmp_path / "sub" / "a.txt", "hé")
    assert file.read_bytes() == "hé".encode()
    assert [p.name for p in file.parent.iterdir()] == ["a.txt"]


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    file = write_atomic(tmp_path / "a", b"old")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
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
