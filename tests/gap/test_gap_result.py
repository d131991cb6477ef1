"""A diagnosis and its refit request survive the disk, and what is neither is refused."""

import msgspec
import pytest

from trueup.core.errors import TrueupError
from trueup.gap.result import Cause, GapResult, read
from trueup.report.operate.gap import gap_page, verdict
from trueup.world.fitted.refit import RefitRequest, Suspect, read_refit


def _result(refit):
    return GapResult(
        robot="go2", base="fixed", logs=("a.mcap",), hashes=("00",), params=None, windows=10, seconds=20.0,
        nothing_wrong=refit is None, causes=(), pairs=(), tried={"delay": 0.4}, horizons=(), distances={}, notes=(),
        refit=refit,
    )  # fmt: skip


def test_a_diagnosis_reads_back_with_its_refit_request(tmp_path):
    suspect = Suspect(name="delay", of=(), low=0.0, high=0.04, unit="s")
    asked = RefitRequest(
        robot="go2", base="fixed", params=("pace", "delay"), suspects=(suspect,), logs=("a.mcap",), hashes=("00",)
    )
    result = _result(asked)
    result.write(tmp_path)
    assert read(tmp_path) == result
    assert read_refit(tmp_path) == asked


def test_an_older_request_goes_when_nothing_is_wrong(tmp_path):
    (tmp_path / "refit.json").write_text("{}")
    _result(None).write(tmp_path)
    assert not (tmp_path / "refit.json").exists()


@pytest.mark.parametrize(("reader", "name"), [(read, "result.json"), (read_refit, "refit.json")])
def test_other_files_are_refused_by_name(tmp_path, reader, name):
    with pytest.raises(TrueupError, match="no such file"):
        reader(tmp_path)
    (tmp_path / name).write_text('{"robot": 3}')
    with pytest.raises(TrueupError, match=name):
        reader(tmp_path)


def test_the_verdict_says_that_recordings_disagree_or_names_the_cause_once():
    plain = _result(None)
    assert verdict(plain).startswith("NOTHING WRONG")
    apart = msgspec.structs.replace(plain, disagreement="recordings disagree about gain: 1.2 times")
    assert verdict(apart) == "NO SINGLE CAUSE: recordings disagree about gain: 1.2 times."
    gain = Cause(
        name="gain", joints=("FL_hip_joint",), size=0.6, unit="times", explained=0.5, interval=(0.4, 0.6),
        confidence=0.9, tied=False, evidence="0.6 times of FL_hip_joint: explains 50% of the mismatch",
        command="trueup calibrate a.mcap", excitation="",
    )  # fmt: skip
    told = msgspec.structs.replace(plain, nothing_wrong=False, causes=(gain,))
    assert verdict(told).count("FL_hip_joint") == 1
    page = gap_page(told).html()
    assert "40% to 60%" in page
    assert "gain: trueup calibrate a.mcap" in page
