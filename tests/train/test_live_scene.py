"""The live page of a scene: two arms and a cube in a real browser, moving and pushed."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from live_page import KeepPose, browser_tab, pixels, running, wait
from two_arms import count_colours, paint, two_arms_task

from trueup.tasks.load import EnvCfg, make_env
from trueup.train.live import live
from trueup.view.draw import visual_model

pytestmark = pytest.mark.medium


def painted_view(monkeypatch: pytest.MonkeyPatch, port: int) -> live.LiveView:
    monkeypatch.setattr(live, "visual_model", lambda scene, cfg: paint(visual_model(scene, cfg)))
    env = make_env(two_arms_task(), EnvCfg(nenv=1, threads=1))
    return live.LiveView(env, KeepPose(env.naction), port=port)


def colours(tab: Any) -> dict[str, int]:
    return count_colours(pixels(tab)[:, 100:])  # right of the page's own coloured axes


def test_two_arms_and_a_cube_are_seen_and_the_cube_moves(monkeypatch):
    with closing(painted_view(monkeypatch, 18360)) as view, browser_tab(view) as tab:
        seen = colours(tab)
        assert min(seen.values()) > 100, seen
        view.env.sim.object_pose("cube")[0, :3] = (0.0, 0.12, 5.0)  # out of the picture
        view.draw(view.env.sim.qpos[0])
        tab.wait_for_timeout(1500)
        without = colours(tab)
        assert without["green"] == 0
        assert without["red"] >= seen["red"]
        assert without["blue"] >= seen["blue"]


def test_a_push_moves_the_arms_and_not_the_cube(monkeypatch):
    with closing(painted_view(monkeypatch, 18370)) as view:
        view.step()
        cube = view.env.sim.object_vel("cube").copy()
        speed = view.env.sim.joint_vel.copy()
        view._push()
        np.testing.assert_array_equal(view.env.sim.object_vel("cube"), cube)
        assert (view.env.sim.joint_vel != speed).all()


def test_the_page_steps_in_real_time(monkeypatch):
    with running(painted_view(monkeypatch, 18380)) as view:
        wait(lambda: view.steps > 20)
        view.requests.restarts += 1
        wait(lambda: view.restarted == 1)
