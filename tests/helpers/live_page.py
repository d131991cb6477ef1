"""The live view in a real browser, with a policy that keeps the default pose."""

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from PIL import Image

from trueup.core.machine import find_browser
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.train.live.live import LiveView

FLAGS = ["--no-sandbox", "--use-gl=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run"]


class KeepPose:
    """Zero actions: the default pose."""

    def __init__(self, naction: int) -> None:
        self.action = np.zeros((1, naction), np.float32)

    def __call__(self, obs: object) -> np.ndarray:
        return self.action

    def restart(self, rows: object) -> None:
        """Remembers nothing."""


@contextmanager
def running(view: Any) -> Iterator[Any]:
    done = threading.Event()
    thread = threading.Thread(target=view.run, args=(done.is_set,), daemon=True)
    thread.start()
    try:
        yield view
    finally:
        done.set()
        thread.join(10)
        view.close()


def standing(task: str, port: int) -> LiveView:
    env = make_env(load_task(task), EnvCfg(nenv=1, seed=0, threads=1))
    return LiveView(env, KeepPose(env.naction), port=port)


@contextmanager
def browser_tab(view: Any, shows: str = "Push") -> Iterator[Any]:
    from playwright import sync_api as playwright

    path = find_browser()
    if path is None or "chrom" not in path:
        pytest.fail("no Chromium here: scripts/system-packages.sh installs it")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        tab = browser.new_page(viewport={"width": 800, "height": 480})
        tab.goto(view.url)
        tab.get_by_text(shows, exact=True).wait_for(timeout=120_000)
        yield tab
        browser.close()


def pixels(tab: Any) -> np.ndarray:
    """The picture below the notice and left of the panel, once it has come to rest."""
    before, same = _screenshot(tab), 0
    for _ in range(60):
        tab.wait_for_timeout(300)
        after = _screenshot(tab)
        same = same + 1 if np.array_equal(before, after) else 0
        if same == 3:
            return after
        before = after
    raise AssertionError("the picture does not come to rest")


def _screenshot(tab: Any) -> np.ndarray:
    picture = Image.open(io.BytesIO(tab.screenshot(timeout=60_000))).convert("RGB")
    return np.asarray(picture, np.int16)[200:, :460]


def wait(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def robot_mask(view: LiveView, tab: Any) -> np.ndarray:
    """Pixels that change when the robot's bodies are taken away."""
    before = pixels(tab)
    view.server.scene.add_frame("/bodies", show_axes=False, visible=False)
    tab.wait_for_timeout(1500)
    return np.abs(before - pixels(tab)).max(axis=2) > 30
