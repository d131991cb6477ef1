"""A diagnosis and its refit request survive the disk, and what is neither is refused."""

import pytest

from trueup.core.errors import TrueupError
from trueup.gap.result import GapResult, read
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
