"""The page of an evaluation in a real browser, and what the terminal says."""

from __future__ import annotations

import io
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from made_suites import made_bundle, spec_of, suite_file
from opened import opened
from rich.console import Console

from trueup.evaluate.run import evaluate
from trueup.evaluate.score import PairResult, PolicyScore, ProbeResult, RedFlag, Sensitivity
from trueup.report.prove.evaluate import policy_names, print_duels, print_score
from trueup.report.prove.scores_page import scores_page
from trueup.report.prove.words import left_out, level_words, too_few, verdict_status, verdict_words
from trueup.tasks.evaluation.statistics import wilson
from trueup.view.film import find_ffmpeg

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def scores(tmp_path_factory) -> tuple[PolicyScore, PolicyScore]:
    """Two policies in two scenarios, with films that were not rendered and margins that were made up."""
    folder = tmp_path_factory.mktemp("scores")
    both = []
    for name, size in (("holds", 0.0), ("shakes", 8.0)):
        bundle, out = made_bundle(spec_of(), size), folder / name
        bundle.path = Path(f"{name}.bundle")
        score = evaluate(bundle, scenarios=suite_file(folder), trials=20, threads=1, out=out, films=False)
        results = tuple(replace(one, film=_film(out, one.name)) for one in score.results)
        both.append(replace(score, results=results, sensitivity=made_sensitivity(), red_flags=(flag(),)))
    return both[0], both[1]


def _film(folder: Path, name: str) -> str:
    file = folder / "worst" / f"{name}.mp4"
    source = ["-f", "lavfi", "-i", "color=c=blue:s=64x48:d=0.5", "-pix_fmt", "yuv420p"]
    subprocess.run([find_ffmpeg(), "-y", "-loglevel", "error", *source, str(file)], check=True)
    return f"worst/{name}.mp4"


def flag() -> RedFlag:
    return RedFlag(name="jerky", seen=NASTY, cause="haste", fix="rest")


def made_sensitivity() -> Sensitivity:
    probes = tuple(
        ProbeResult(
            title=title, param=param, unit=unit, operation="set", levels=(1.0, 2.0), margin=margin, breaks=breaks,
            rates=(wilson(30, 30), wilson(10, 30)),
        )
        for title, param, unit, margin, breaks in (("delay", "delay", "s", 1.0, 2.0), ("gain", "kp", "x", None, 1.0))
    )  # fmt: skip
    pairs = (PairResult(titles=("delay", "gain"), levels=(0.5, 0.5), rate=wilson(3, 20)),)
    return Sensitivity(key="", base="stand", trials=30, nominal=wilson(30, 30), probes=probes, pairs=pairs)


@pytest.mark.medium
def test_two_policies_stand_side_by_side_in_a_browser(scores, tmp_path):
    with opened(scores_page(scores).write(tmp_path / "index.html")) as page:
        assert page.complaints == []
        verdicts = [one.inner_text() for one in page.query_selector_all(".verdict")]
        assert verdicts[0] == "holds passes 1 of 2 scenarios; not no torque."
        assert verdicts[1].startswith("shakes passes 0 of 2")
        first = page.query_selector("table").inner_text()
        assert "20/20" in first
        assert "0/20" in first
        assert "won" in first
        assert "drawn" in first
        boxes = [one.bounding_box() for one in page.query_selector_all(".films figure")]
        assert len(boxes) == 4
        assert boxes[0]["y"] == boxes[1]["y"] != boxes[2]["y"]  # a row for each scenario, a column for each policy
        assert len(page.query_selector_all(".plot[data-drawn=yes]")) == 3
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert NASTY in page.inner_text("body")
        page.wait_for_function("[...document.querySelectorAll('video')].every(film => film.videoWidth == 64)")


@pytest.mark.medium
def test_one_policy_has_a_page_of_its_own(scores, tmp_path):
    with opened(scores[0].report(tmp_path / "one.html")) as page:
        assert page.complaints == []
        assert page.inner_text("h1") == "Evaluation of holds"
        assert page.inner_text(".verdict") == "Passes 1 of 2 scenarios; not no torque."
        text = page.inner_text("body")
        for part in ("fell 20", "delay and gain", "15%", "Usually haste. To mend it, rest.", "0.84 – 1.00"):
            assert part in text


def printed(show, *what) -> str:
    console = Console(file=io.StringIO(), width=150)
    show(*what, console)
    return console.file.getvalue()


def test_the_terminal_says_the_same(scores):
    text = printed(print_score, scores[0])
    assert "holds: passes 1 of 2 scenarios" in text
    assert "20/20" in text
    assert "fell 20" in text
    assert "worst pair" in text
    duels = printed(print_duels, scores)
    assert "holds against shakes: won 1, drawn 1, lost 0 of 2 scenarios" in duels


def test_verdicts_in_words(scores):
    score = scores[0]
    assert verdict_status(score) == "warn"
    assert verdict_words(replace(score, complete=False)) == "not finished, 2 scenarios done"
    good = replace(score, results=score.results[:1])
    assert (verdict_status(good), verdict_words(good)) == ("good", "passes all 1 scenarios")
    assert too_few(score) == ""
    assert "3 trials are too few to pass: 4 successes" in too_few(replace(score, trials=3))
    assert left_out(score) == ""
    lacking = tuple(
        replace(one, not_honoured=("delay", *more)) for one, more in zip(score.results, ((), ("carpet",)), strict=True)
    )
    assert "stand: delay; limp: delay, carpet" in left_out(replace(score, results=lacking, engine="sapien"))
    every = tuple(replace(one, not_honoured=("delay",)) for one in score.results)
    assert "sapien cannot honour delay in all scenarios" in left_out(replace(score, results=every, engine="sapien"))


def test_levels_have_units():
    delay, gain = made_sensitivity().probes
    assert level_words(delay, 0.02) == "0.02 s"
    assert level_words(gain, 1.5) == "1.5 x"
    assert level_words(gain, None) == "-"


def test_policies_of_one_name_are_told_apart():
    assert policy_names([Path("a/walk.bundle"), Path("b/walk.bundle"), Path("c.bundle")]) == ["walk-1", "walk-2", "c"]
