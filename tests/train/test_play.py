"""Films and the live view, over a real socket and in a real browser."""

import re
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
from test_trainer import CFG, STEP

from trueup.core.errors import TrueupError
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.train.config import Budget
from trueup.train.play.play import open_run
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
    from trueup.train.play.show import film_policy

    env, policy = open_run(run)
    path = film_policy(env, policy, tmp_path / f"film{suffix}", seconds=0.4, width=96, height=64)
    assert path.stat().st_size > 500


def test_a_film_is_seen_from_where_the_robot_first_faces():
    from trueup.train.play.show import facing
    from trueup.view.camera import CameraCfg

    env = make_env(load_task("go2-velocity"), EnvCfg(nenv=1, threads=1))
    qpos = env.sim.default_qpos.copy()
    half = np.radians(35.0)
    at = env.sim.base_qpos + 3
    qpos[at : at + 4] = [np.cos(half), 0.0, 0.0, np.sin(half)]
    assert facing(env, CameraCfg(azimuth=90.0), qpos).azimuth == pytest.approx(160.0)


def test_a_film_of_one_command_asks_for_it_throughout():
    from live_page import KeepPose

    from trueup.train.play.show import episode_qpos

    env = make_env(load_task("go2-velocity"), EnvCfg(nenv=1, threads=1))
    episode_qpos(env, KeepPose(env.naction), 0.2, (0.4, 0.1, -0.3))
    np.testing.assert_allclose(env.frame.asked[0], [0.4, 0.1, -0.3])
    arm = make_env(load_task("pendulum-swingup"), EnvCfg(nenv=1, threads=1))
    with pytest.raises(TrueupError, match="takes no command"):
        episode_qpos(arm, KeepPose(1), 0.2, (0.4, 0.1, -0.3))


@pytest.mark.medium
def test_a_browser_shows_the_view_and_pushes(run):
    from live_page import browser_tab, running, wait

    from trueup.train.live.live import LiveView

    with running(LiveView(*open_run(run), port=18080)) as view, browser_tab(view) as tab:
        tab.get_by_text("Push", exact=True).click()
        wait(lambda: view.pushed == 1)
        tab.get_by_text("Start again", exact=True).click()
        wait(lambda: view.restarted == 1)
        assert tab.locator("canvas").count() >= 1
        steps = view.steps
        wait(lambda: view.steps > steps)


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
