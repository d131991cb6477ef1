"""`trueup evaluate` on real bundles: tables, files, exit codes, a stop, and errors in one line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from made_policies import save_linear
from made_suites import STAND, suite_file

from trueup.policy.bundle.bundle import write_bundle
from trueup.policy.bundle.passport import PolicyOrigin
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.train.bundles.measure import goal_facts, make_passport

LONG = STAND.replace("seconds = 1.0", "seconds = 20.0")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    """A policy that holds the default pose."""
    folder = tmp_path_factory.mktemp("bundles")
    env = TaskEnv(load_task("go2-velocity"), EnvCfg(nenv=1, threads=1))
    spec = env.policy_spec()
    onnx = save_linear(folder / "zero.onnx", np.zeros((spec.observation.nactor, 12)))
    facts = goal_facts(env, np.zeros((2, 3), np.float32))
    passport = make_passport(env, spec, facts, PolicyOrigin(format="trueup"), None, ranges_missing="made by hand")
    return write_bundle(folder / "holds.bundle", passport, onnx.read_bytes()).path


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "trueup", "evaluate", *map(str, words)]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=280)


@pytest.mark.medium
def test_a_bundle_is_scored_and_its_page_written(bundle, tmp_path):
    out = tmp_path / "out"
    done = run(bundle, "--scenarios", suite_file(tmp_path), "--trials", 5, "--threads", 1, "--no-films", "--out", out)
    assert done.returncode == 1, done.stderr  # a scenario is not passed
    assert "holds: passes 1 of 2 scenarios; not no torque" in done.stdout
    assert {path.name for path in out.iterdir()} >= {"index.html", "score.json", "scenarios", "worst"}
    assert sorted(path.name for path in (out / "worst").iterdir()) == ["limp.mcap", "stand.mcap"]
    score = json.loads((out / "score.json").read_text())
    assert len(score["bundle_hash"]) == 64
    alone = run(
        bundle, "--scenarios", suite_file(tmp_path), "--only", "stand", "--trials", 5, "--threads", 1, "--no-films",
        "--json", "--out", tmp_path / "alone",
    )  # fmt: skip
    assert alone.returncode == 0, alone.stderr
    assert json.loads(alone.stdout)[0]["results"][0]["rate"]["successes"] == 5


@pytest.mark.medium
def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(bundle, tmp_path):
    out, suite = tmp_path / "out", suite_file(tmp_path, LONG)
    words = (bundle, "--scenarios", suite, "--trials", 20, "--threads", 1, "--no-films", "--out", out)
    child = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = time.monotonic()
    while not (out / "scenarios" / "stand.json").exists() and time.monotonic() - begun < 200:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    text, complaint = child.communicate(timeout=60)
    assert child.returncode == 130, complaint
    assert "the same command goes on" in text
    kept = json.loads((out / "score.json").read_text())
    assert not kept["complete"]
    assert [one["name"] for one in kept["results"]] == ["stand"]
    again = run(*words, "--only", "stand")
    assert again.returncode == 0, again.stderr
    done = json.loads((out / "score.json").read_text())
    assert done["complete"]
    assert done["results"][0] == kept["results"][0]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.bundle",), "nowhere.bundle"),
        (("BUNDLE", "--only", "stnd"), "did you mean 'stand'"),
        (("BUNDLE", "--trials", "0"), "trials must lie in"),
        (("BUNDLE", "--params", "nowhere"), "nowhere"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(bundle, tmp_path, words, message):
    given = [str(bundle) if word == "BUNDLE" else word for word in words]
    done = run(*given, "--scenarios", suite_file(tmp_path), "--out", tmp_path / "out")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
