"""What a loop says of the time ahead: one pace for a stage and for all that follow it."""

import json
from pathlib import Path

import pytest

from trueup.loop import show
from trueup.loop.run import Looped, context_of, estimate, stage_of
from trueup.loop.verbs import LoopVerb
from trueup.loop.workspace import TIMES, Workspace


def _begun(folder: Path, seconds: float) -> LoopVerb:
    """A loop whose recording took this long."""
    asked = LoopVerb(robot="go2", workspace=folder, rounds=1)
    record = Workspace(folder).folder(1, "record")
    record.mkdir(parents=True)
    (record / TIMES).write_text(json.dumps({"started": "", "seconds": seconds, "cpu_seconds": 0.0, "parts": 1}))
    return asked


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_a_stage_and_all_that_follow_are_told_at_the_pace_of_those_before(tmp_path: Path, factor: float) -> None:
    asked = LoopVerb(robot="go2", workspace=tmp_path / "fresh", rounds=1)
    record, check, gap = (stage_of(context_of(asked), name, 1) for name in ("record", "check", "gap"))
    assert estimate(asked, record).stage_s == pytest.approx(record.budget_s)
    usual = estimate(asked, check)
    other = _begun(tmp_path / "other", factor * record.budget_s)
    found = estimate(other, check)
    assert found.stage_s == pytest.approx(factor * check.budget_s)
    assert found.whole_s == pytest.approx(factor * usual.whole_s)
    assert found.whole_s > found.stage_s
    last = estimate(other, gap)
    assert last.whole_s == last.stage_s


def test_what_is_printed_of_a_stage_and_of_its_rest_is_the_same_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = LoopVerb(robot="go2", workspace=tmp_path, rounds=1, page=False)
    loop = context_of(asked)
    check = stage_of(loop, "check", 1)
    _begun(tmp_path, 2.0 * stage_of(loop, "record", 1).budget_s)  # this computer takes twice as long

    def runs(asked: LoopVerb, tell: show.Tell) -> Looped:
        tell(check, "begins", 0.0, "")
        tell(check, "runs", 5.0, "checking")
        return Looped(workspace=loop.workspace, figures={}, comparison=None)

    monkeypatch.setattr(show, "_run", runs)
    show.run_verb(asked)
    said = capsys.readouterr().out
    assert check.budget_s == 10.0
    assert "about 00:20; with all that follows" in said
    assert "left about 00:15" in said
