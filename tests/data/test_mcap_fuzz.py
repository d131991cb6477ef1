"""Mutated and hostile MCAP files end in success or TrueupError, under 2 s and 512 MB each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "helpers" / "mcap_fuzz.py"


@pytest.mark.medium
def test_a_thousand_mutated_files_are_read_or_refused() -> None:
    search = os.pathsep.join([str(FUZZ.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, str(FUZZ), "1000", os.environ.get("TRUEUP_FUZZ_SEED", "0")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": search},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    print({key: report[key] for key in ("outcomes", "worst_s", "start_mb", "peak_mb")})
    assert set(report["outcomes"]) == {"read", "refused"}
    assert min(report["outcomes"].values()) > 100
    assert report["last"]["honest"] == "read"
    assert report["worst_s"][0] < 2.0
    assert report["peak_mb"] < 512
