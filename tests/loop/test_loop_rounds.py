"""Hashes by content, and one round against another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.loop.compare import RoundFigures, compare, mean_interval
from trueup.loop.context import Context
from trueup.loop.fingerprint import fingerprint
from trueup.loop.run import context_of, run_loop
from trueup.loop.stage import Stage, StageCommand
from trueup.loop.stages.measure import suspected
from trueup.loop.verbs import STAGES, LoopVerb
from trueup.tasks.evaluation.statistics import mcnemar
from trueup.world.fitted.refit import REFIT_FILE, RefitRequest, Suspect, write_refit

RUNS = 8


def figures(*, falls: int = 0, error: float | None = 0.2, spread: float = 0.01) -> RoundFigures:
    """A round of 8 runs of 4 blocks, whose errors lie around `error`."""
    rng = np.random.default_rng(0)
    blocks = None
    if error is not None:
        blocks = tuple(tuple(map(float, error + spread * rng.standard_normal(4))) for _ in range(RUNS))
    fell = tuple(k < falls for k in range(RUNS))
    return RoundFigures(fell=fell, seconds=36.0, blocks=blocks, tracking=0.1)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (figures(), figures(error=0.1), "better"),
        (figures(), figures(falls=1, error=0.1), "mixed"),
        (figures(), figures(error=0.3), "worse"),
        (figures(), figures(), "no difference"),
        (figures(), figures(error=None), "no difference"),
        (figures(falls=7), figures(), "better"),
        (figures(falls=1), figures(), "no difference"),
        (figures(), figures(falls=7), "worse"),
        (figures(falls=7), figures(error=0.3), "mixed"),
    ],
)
def test_a_round_is_better_only_beyond_what_chance_does(
    first: RoundFigures, second: RoundFigures, verdict: str
) -> None:
    found = compare(first, second)
    assert found is not None
    assert found.verdict == verdict


def test_one_round_is_not_compared() -> None:
    assert compare(figures(), None) is None


def test_falls_are_compared_by_an_exact_test() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(6, 0) == pytest.approx(2 / 64)
    assert mcnemar(0, 5) == pytest.approx(2 / 32)
    assert mcnemar(2, 2) == 1.0


def test_the_interval_of_a_mean_is_that_of_its_runs() -> None:
    """Blocks of a run that are alike tell no more than the run: the interval is that of independent runs."""
    runs = np.random.default_rng(1).normal(0.3, 0.1, 40)
    low, high = mean_interval(np.repeat(runs[:, None], 4, axis=1))
    half = 1.96 * runs.std() / np.sqrt(40)
    assert low == pytest.approx(runs.mean() - half, abs=0.2 * half)
    assert high == pytest.approx(runs.mean() + half, abs=0.2 * half)


def test_a_hash_leaves_out_the_clock_and_keeps_the_numbers(tmp_path: Path) -> None:
    def hashed(content: dict[str, object]) -> str:
        (tmp_path / "a.json").write_text(json.dumps(content))
        return fingerprint(tmp_path / "a.json")

    first = hashed({"error": 0.1, "wall_s": 3.0, "rows": [{"minutes": 1, "falls": 0}]})
    assert hashed({"error": 0.1, "wall_s": 4.0, "rows": [{"minutes": 2, "falls": 0}]}) == first
    assert hashed({"error": 0.1, "wall_s": 3.0, "rows": [{"minutes": 1, "falls": 1}]}) != first
    here, there = (hashed({"logs": [f"{place}/air.mcap"], "fit_s": 1.0}) for place in ("/tmp/a", "/home/me/b"))
    assert here == there, "places on disk do not count"
    assert hashed({"logs": ["/tmp/a/squat.mcap"]}) != here
    told = [
        hashed({"command": f"trueup calibrate air.mcap --refit {place}/refit.json # m/s"}) for place in ("/a", "/b/c")
    ]
    assert told[0] == told[1]
    here, there = (hashed({"fit_hash": 32 * digits, "success": 0.9}) for digits in ("0a", "b1"))
    assert here == there, "a file's hash holds its times; what it is made of is named by its stage"
    with pytest.raises(TrueupError, match="missing"):
        fingerprint(tmp_path / "none.json")


def test_a_workspace_of_another_driver_is_refused(tmp_path: Path) -> None:
    context_of(LoopVerb(robot="go2", driver="twin:mild?seed=1", workspace=tmp_path / "w"))
    with pytest.raises(TrueupError, match="choose another --workspace"):
        context_of(LoopVerb(robot="go2", driver="twin:worn?seed=1", workspace=tmp_path / "w"))
    with pytest.raises(TrueupError, match="at least one round"):
        context_of(LoopVerb(robot="go2", workspace=tmp_path / "v", rounds=0))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"robot": "go3"}, "did you mean 'go2'"),
        ({"driver": "unitre:eth0"}, "did you mean 'unitree:'"),
        ({"driver": "twin:mild?sed=1"}, "did you mean 'seed'"),
        ({"task": "go2-velocty"}, "did you mean 'go2-velocity'"),
        ({"robot": "g1_23"}, "no shipped task is for 'g1_23'.*trueup task init g1_23"),
        ({"scenarios": "locomotoin"}, "shipped suites are"),
        ({"start": Path("nowhere")}, "no run here"),
        ({"logs": (Path("nowhere.mcap"),)}, "no such recording"),
        ({"logs": (Path(__file__),)}, "are .mcap files"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(tmp_path: Path, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(TrueupError, match=told):
        run_loop(LoopVerb(**{"robot": "go2", "workspace": tmp_path / "w"} | asked), lambda *said: None)
    assert not (tmp_path / "w").exists()


def test_a_robot_is_moved_only_while_somebody_stands_by(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="--attended; or give recordings"):
        run_loop(LoopVerb(robot="go2", driver="unitree:eth0", workspace=tmp_path / "w"), lambda *said: None)
    assert not list(tmp_path.glob("**/air.mcap"))


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which stages ran, instead of the real ones: each writes its round and name."""
    told: list[str] = []

    def make(name: str) -> Callable[[Context, int], Stage]:
        def stage(loop: Context, round_: int) -> Stage:
            before = STAGES[STAGES.index(name) - 1] if name != STAGES[0] else "gap"
            first = name == STAGES[0]
            after = ((round_ - first, before),) if round_ - first else ()

            def commands(folder: Path) -> list[StageCommand]:
                told.append(f"{round_}{name}")
                (folder / "out.txt").write_text(f"{round_} {name}")
                return []

            return Stage(name=name, round=round_, after=after, commands=commands, outputs=("out.txt",))

        return stage

    monkeypatch.setattr("trueup.loop.run._MAKE", {name: make(name) for name in STAGES})
    return told


def loop_of(tmp_path: Path, ran: list[str], **more: Any) -> list[str]:
    ran.clear()
    run_loop(LoopVerb(robot="pendulum", workspace=tmp_path / "w", **more), lambda *told: None)
    return list(ran)


def test_until_and_rounds_say_how_far_and_nothing_is_done_twice(tmp_path: Path, ran: list[str]) -> None:
    first = [f"1{name}" for name in STAGES]
    assert loop_of(tmp_path, ran, until="verify") == first[: STAGES.index("verify") + 1]
    assert loop_of(tmp_path, ran, rounds=1) == ["1deploy", "1gap"]
    assert loop_of(tmp_path, ran, rounds=3) == [f"{k}{name}" for k in (2, 3) for name in STAGES]
    assert loop_of(tmp_path, ran, rounds=3) == []


def test_from_does_a_stage_and_all_after_it_again(tmp_path: Path, ran: list[str]) -> None:
    loop_of(tmp_path, ran, rounds=2)
    after = [f"2{name}" for name in STAGES[STAGES.index("train") :]]
    assert loop_of(tmp_path, ran, rounds=2, from_="train") == after, "of the newest round"
    assert loop_of(tmp_path, ran, rounds=2, from_="gap", from_round=1) == ["1gap"], "its outcome is the same"
    with pytest.raises(TrueupError, match="rounds that have done train are 1, 2"):
        loop_of(tmp_path, ran, rounds=2, from_="train", from_round=3)


def test_a_diagnosis_leads_the_fit_to_what_a_log_in_the_air_can_show(tmp_path: Path) -> None:
    suspects = tuple(
        Suspect(name=name, of=(), low=0.5, high=2.0, unit="times") for name in ("kp", "mass_scale", "contact_friction")
    )
    assert suspected(tmp_path) == ()
    write_refit(
        RefitRequest(robot="go2", base="free", params=("kp",), suspects=suspects, logs=(), hashes=()),
        tmp_path / REFIT_FILE,
    )
    assert suspected(tmp_path) == ("kp",)
