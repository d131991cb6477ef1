"""Films and the live view, over a real socket and in a real browser."""

import re
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest
from test_trainer import CFG, STEP

from trueup.core.errors import TrueupError
from trueup.core.machine import find_browser
from trueup.train.config import Budget
from trueup.train.play import open_run
from trueup.train.train import train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "swing"
    train(CFG, path, Budget(steps=2 * STEP))
    return path


def test_a_run_opens_with_its_environment_and_policy(run):
    env, policy = open_run(run)
    assert env.nenv == 1
    assert policy(env.reset()).shape == (1, 1)


def test_an_exported_policy_acts_as_its_run_does(run):
    env, policy = open_run(run)
    same_env, exported = open_run(run / "policy")
    obs = env.reset()
    np.testing.assert_array_equal(policy(obs), exported(same_env.reset()))


def test_a_folder_without_run_or_checkpoint_is_refused(tmp_path, run):
    with pytest.raises(TrueupError, match="no run here"):
        open_run(tmp_path)
    (tmp_path / "config.json").write_bytes((run / "config.json").read_bytes())
    with pytest.raises(TrueupError, match="no checkpoint"):
        open_run(tmp_path)


@pytest.mark.medium
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_a_film_is_written(run, tmp_path, suffix):
    from trueup.train.show import film_policy

    env, policy = open_run(run)
    path = film_policy(env, policy, tmp_path / f"film{suffix}", seconds=0.4, width=96, height=64)
    assert path.stat().st_size > 500


@pytest.fixture
def view(run):
    from trueup.train.live import LiveView

    env, policy = open_run(run)
    view, done = LiveView(env, policy, port=18080), threading.Event()
    thread = threading.Thread(target=view.run, args=(done.is_set,), daemon=True)
    thread.start()
    yield view
    done.set()
    thread.join(10)
    view.close()


@pytest.mark.medium
def test_a_browser_shows_the_view_and_pushes(view):
    from playwright import sync_api as playwright

    path = find_browser()
    if path is None or "chrom" not in path:
        pytest.fail("no Chromium here: scripts/system-packages.sh installs it")
    flags = ["--no-sandbox", "--use-gl=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=flags)
        tab = browser.new_page()
        tab.goto(view.url)
        tab.get_by_text("Push", exact=True).wait_for(timeout=60_000)
        before = view.env.sim.qvel[0].copy()
        tab.get_by_text("Push", exact=True).click()
        _wait(lambda: view.pushed == 1)
        tab.get_by_text("Start again", exact=True).click()
        _wait(lambda: view.restarted == 1)
        assert np.isfinite(before).all()
        assert tab.locator("canvas").count() >= 1
        browser.close()
    steps = view.steps
    _wait(lambda: view.steps > steps)


@pytest.mark.medium
def test_the_command_serves_the_page_and_ends_by_itself(run):
    command = [sys.executable, "-m", "trueup.cli", "play", str(run), "--port", "18181", "--seconds", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    url = re.search(r"http://[\d.:]+", line).group()
    page = urllib.request.urlopen(url, timeout=20).read()
    assert b"viser" in page.lower() or b"<html" in page.lower()
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 0, complaint


def _wait(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)
