"""Hashes by content, and one round against another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trueup.core.errors import TrueupError
from trueup.loop.compare import RoundFigures, compare
from trueup.loop.fingerprint import fingerprint
from trueup.loop.run import context_of
from trueup.loop.verbs import LoopVerb


def figures(*, falls: int = 0, error: float | None = 0.2) -> RoundFigures:
    return RoundFigures(runs=3, falls=falls, seconds=36.0, error=error, low=None, high=None, tracking=0.1)


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        (figures(error=0.1), "better"),
        (figures(falls=1, error=0.1), "worse"),
        (figures(error=0.3), "worse"),
        (figures(), "no worse"),
        (figures(error=None), "no worse"),
    ],
)
def test_a_round_is_better_if_nothing_got_worse(second: RoundFigures, verdict: str) -> None:
    found = compare(figures(), second)
    assert found is not None
    assert found.verdict == verdict


def test_one_round_is_not_compared() -> None:
    assert compare(figures(), None) is None


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
