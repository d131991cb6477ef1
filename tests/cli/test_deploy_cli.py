"""`trueup deploy` and `trueup deploy replay` as a user runs them: lines, files, exit codes, errors in one line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from made_deploys import standing_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return standing_bundle(tmp_path_factory.mktemp("bundles") / "stand.bundle").path


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trueup", "deploy", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)


@pytest.mark.medium
def test_without_a_certificate_it_refuses_in_one_line(bundle):
    done = run(bundle, "--driver", "twin:ideal?base=free")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "has no certificate" in done.stderr


@pytest.mark.medium
def test_a_missing_rung_is_named_with_its_command(bundle):
    done = run(bundle, "--driver", "twin:ideal?base=free", "--uncertified", "--rung", "ground")
    assert done.returncode == 2
    assert "UNCERTIFIED" in done.stdout
    assert "--rung replay`" in done.stderr.replace("\n", " ")


@pytest.mark.medium
def test_the_first_rungs_are_climbed_and_their_files_written(bundle, tmp_path):
    first = run(bundle, "--rung", "replay")
    assert first.returncode == 0, first.stderr
    assert "rung replay passed" in first.stdout
    assert f"next     trueup deploy {bundle} --rung shadow --driver DRIVER" in first.stdout
    out = tmp_path / "shadow"
    shadow = run(bundle, "--rung", "shadow", "--driver", "twin:ideal?lockstep=1", "--seconds", 6, "--out", out)
    assert shadow.returncode == 0, shadow.stderr
    assert "nobody else commanded the robot" in shadow.stdout
    assert {path.name for path in out.iterdir()} >= {"policy.rows", "index.html"}
    hang = run(
        bundle, "--rung", "hang", "--driver", "twin:ideal?lockstep=1", "--seconds", 5, "--uncertified", "--command",
        "forward=0.1", "--out", tmp_path / "hang",
    )  # fmt: skip
    assert hang.returncode == 0, hang.stderr + hang.stdout
    assert "UNCERTIFIED" in hang.stdout
    assert "rung hang passed" in hang.stdout
    assert "s to the first command" in hang.stdout
    again = run("replay", tmp_path / "hang")
    assert again.returncode == 0, again.stderr
    assert "every command bit for bit" in again.stdout


@pytest.mark.medium
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.bundle", "--rung", "replay"), "nowhere.bundle"),
        (("replay", "nowhere"), "nowhere"),
    ],
)
def test_what_is_not_there_is_named(words, message):
    done = run(*words)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.medium
def test_help_says_what_goes_in_and_what_comes_out():
    done = run("--help")
    assert done.returncode == 0
    assert "In: a bundle with its certificate" in done.stdout
    assert "--uncertified" in done.stdout
