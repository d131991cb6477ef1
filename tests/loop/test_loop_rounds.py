"""Hashes by content, and one round against another."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.loop.compare import RoundFigures, compare, mean_interval, sign_test
from trueup.loop.fingerprint import fingerprint
from trueup.loop.run import context_of
from trueup.loop.verbs import LoopVerb

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
    assert sign_test(0, 0) == 1.0
    assert sign_test(6, 0) == pytest.approx(2 / 64)
    assert sign_test(0, 5) == pytest.approx(2 / 32)
    assert sign_test(2, 2) == 1.0


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
    with pytest.raises(TrueupError, match="missing"):
        fingerprint(tmp_path / "none.json")


def test_a_workspace_of_another_driver_is_refused(tmp_path: Path) -> None:
    context_of(LoopVerb(robot="go2", driver="twin:mild?seed=1", workspace=tmp_path / "w"))
    with pytest.raises(TrueupError, match="choose another --workspace"):
        context_of(LoopVerb(robot="go2", driver="twin:worn?seed=1", workspace=tmp_path / "w"))
    with pytest.raises(TrueupError, match="at least one round"):
        context_of(LoopVerb(robot="go2", workspace=tmp_path / "v", rounds=0))
