"""The whole loop with a robot folder and a task file of one's own, and its page in a real browser without a network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin

import pytest
from opened import opened

import trueup
from trueup.core.errors import TrueupError
from trueup.core.machine import find_browser
from trueup.loop.run import opened as opened_workspace
from trueup.loop.run import run_loop, stage_of
from trueup.loop.show import write_page
from trueup.loop.verbs import STAGES, Budgets, LoopVerb
from trueup.loop.workspace import Workspace

BUDGETS = Budgets(
    record_s=6.0, windows=4, tie="none", iterations=4, rungs="pd", train_steps=800, more_steps=800, nenv=64, trials=2,
    suite="locomotion_short", worlds=2, deploy_s=5.0, second="none",
)  # fmt: skip
TASK = """
from dataclasses import replace

from trueup.tasks.load import load_task


def swing():
    return replace(load_task("pendulum-swingup"), name="my-swing", robot={robot!r})
"""

pytestmark = [pytest.mark.medium, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> LoopVerb:
    """A loop that ran once, with a robot and a task that trueup does not know."""
    place = tmp_path_factory.mktemp("own")
    robot = place / "my_pendulum"
    shutil.copytree(Path(trueup.__file__).parent / "robot" / "zoo" / "pendulum", robot)
    spec = (robot / "spec.toml").read_text().replace('name = "pendulum"', 'name = "my_pendulum"')
    (robot / "spec.toml").write_text(spec)
    (place / "mine.py").write_text(TASK.format(robot=str(robot)))
    verb = LoopVerb(
        robot=str(robot), driver="twin:mild?seed=3", task=f"{place / 'mine.py'}:swing", workspace=place / "space",
        rounds=1, threads=1,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        run_loop(verb, lambda stage, what, seconds, line: None, on_change=_with_page, budgets=BUDGETS)
    return verb


def _with_page(loop: object) -> None:
    if loop.workspace.manifest(1, "gap") is not None:  # type: ignore[attr-defined]
        write_page(loop, films=True)  # type: ignore[arg-type]


def space(asked: LoopVerb) -> Workspace:
    assert asked.workspace is not None
    return Workspace(asked.workspace)


def test_every_stage_is_done_and_is_not_done_again(asked: LoopVerb) -> None:
    assert set(space(asked).hashes()) == {f"round-1/{name}" for name in STAGES}
    told: list[str] = []
    run_loop(asked, lambda stage, what, seconds, line: told.append(what), budgets=BUDGETS)
    assert told == ["skipped"] * len(STAGES)
    gate = space(asked).manifest(1, "verify")
    assert gate is not None
    assert "--scenarios" in gate.note, "no shipped scenarios test a swing-up, and the loop says so"
    assert list((space(asked).folder(1, "deploy")).glob("full-01/policy.rows")), "the policy ran on the last rung"


def test_the_page_opens_offline_and_every_link_leads_somewhere(asked: LoopVerb) -> None:
    page_file = space(asked).path / "index.html"
    requests: list[str] = []
    with opened(page_file) as page:
        page.on("request", lambda request: requests.append(request.url))
        assert page.complaints == []
        text = page.inner_text("body")
        for title in ("what was recorded", "what the simulator got wrong", "what was learned", "what the robot did"):
            assert f"Round 1: {title}" in text
        assert page.locator("video").count() >= 4
        links = page.eval_on_selector_all("a", "all => all.map(one => one.getAttribute('href'))")
        assert len(links) > 20
        for link in links:
            if link.startswith("#"):
                assert page.locator(f"[id='{link[1:]}']").count() == 1, link
            else:
                assert (page_file.parent / link).is_file(), link
        for name in STAGES:
            row = page.locator("tr", has=page.locator(f"[id='round-1/{name}']"))
            assert row.count() == 1
            assert f"round-1/{name}/stage.log" in row.inner_html() or name in ("evaluate", "verify")
        page.click("a[id='round-1/deploy']")
        assert json.loads(page.inner_text("body"))["stage"] == "deploy"
    assert all(url.startswith("file:") for url in requests)


def test_the_board_serves_the_page_and_makes_it_anew(asked: LoopVerb) -> None:
    from playwright import sync_api as playwright

    if (path := find_browser()) is None:
        pytest.fail("no Chromium here: scripts/system-packages.sh installs it")
    words = [sys.executable, "-m", "trueup.cli", "board", str(space(asked).path), "--port", "0"]
    page_file = space(asked).path / "index.html"
    page_file.unlink()
    board = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert board.stdout is not None
        address = board.stdout.readline().split()[1]
        with playwright.sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            page, seen = browser.new_page(), []
            page.on("request", lambda request: seen.append(request.url))
            for _ in range(300):
                if page_file.exists():
                    break
                page.wait_for_timeout(200)
            page.goto(address)
            assert "my_pendulum: the loop" in page.inner_text("h1")
            for link in ("round-1/calibrate/stage.log", "round-1/calibrate/fit/index.html"):
                answer = page.goto(urljoin(address, link))
                assert answer is not None
                assert answer.ok
            assert all(url.startswith((address, "data:", "blob:")) for url in seen)
            browser.close()
    finally:
        board.terminate()
        assert board.wait(20) == 0


def test_recordings_stand_in_for_a_robot(asked: LoopVerb, tmp_path: Path) -> None:
    logs = []
    for name in ("one", "two"):
        logs.append(tmp_path / f"{name}.mcap")
        shutil.copyfile(space(asked).folder(1, "record") / "air.mcap", logs[-1])
    given = LoopVerb(robot=asked.robot, task=asked.task, logs=tuple(logs), workspace=tmp_path / "w", until="check")
    run_loop(given, lambda *told: None, on_change=lambda loop: None, budgets=BUDGETS)
    loop = opened_workspace(tmp_path / "w")
    assert [one.name for one in loop.logs(1)] == ["one.mcap"], "the last quarter is held out"
    assert [one.name for one in loop.unseen()] == ["two.mcap"]
    assert stage_of(loop, "deploy", 1).absent
    text = write_page(loop, films=False).read_text()
    assert "Recordings that were given: one.mcap, two.mcap" in text
    with pytest.raises(TrueupError, match="give them names of their own"):
        run_loop(replace(given, logs=(logs[0], logs[0])), lambda *told: None, budgets=BUDGETS)
