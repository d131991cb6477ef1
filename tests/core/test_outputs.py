"""Places to write are checked before anything is done, and nothing is left behind."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from trueup.core.errors import TrueupError
from trueup.core.files import OutEither, OutFile, OutFolder, check_outputs, check_writable


@dataclass
class Config:
    source: Path = Path("/proc/nowhere")
    page: OutFile | None = None
    out: OutFolder | None = None
    log: OutEither = Path("log.mcap")


def test_only_marked_fields_that_are_set_are_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_outputs(Config())
    for bad in ({"page": Path("/proc/a.html")}, {"out": Path("/proc/a")}, {"log": Path("/proc/a.mcap")}):
        with pytest.raises(TrueupError, match="/proc/a"):
            check_outputs(Config(**bad))


@pytest.mark.parametrize("kind", ["file", "folder", "either"])
def test_a_free_place_is_fine_and_stays_free(kind, tmp_path):
    check_writable(tmp_path / "new", kind)
    check_writable(tmp_path / "new" / "deep" / "er.x", kind)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("place", ["{file}/a", "{file}/a/b", "/proc/a", "/proc/a/b", "{long}"])
def test_a_place_that_cannot_be_is_refused(kind, place, tmp_path):
    (tmp_path / "file").write_text("x")
    path = Path(place.format(file=tmp_path / "file", long=tmp_path / ("n" * 300)))
    with pytest.raises(TrueupError, match="cannot be written"):
        check_writable(path, kind)


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    check_writable(tmp_path / "file", "file")
    check_writable(tmp_path, "folder")
    check_writable(tmp_path, "either")
    with pytest.raises(TrueupError, match="is a folder; name a file"):
        check_writable(tmp_path, "file")
    with pytest.raises(TrueupError, match="is a file; name a folder"):
        check_writable(tmp_path / "file", "folder")
    with pytest.raises(TrueupError, match="no ordinary file"):
        check_writable(Path("/dev/full"), "file")
    assert (tmp_path / "file").read_text() == "x"
