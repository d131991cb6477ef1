"""Functions that users bring."""

import pytest

from trueup.core.errors import TrueupError
from trueup.core.own_code import is_own_code, own_function


@pytest.mark.parametrize(
    ("reference", "own"),
    [("my.py:make", True), ("json.decoder:loads", True), ("go2-velocity", False), ("nowhere.at.all:f", False)],
)
def test_only_files_and_installed_modules_are_taken_for_own_code(reference, own):
    assert is_own_code(reference) is own


def test_a_function_of_a_file_is_loaded(tmp_path):
    (tmp_path / "mine.py").write_text("def two():\n    return 2\n")
    assert own_function(f"{tmp_path}/mine.py:two")() == 2


def test_what_is_wrong_is_said(tmp_path):
    (tmp_path / "mine.py").write_text("def make():\n    pass\n")
    with pytest.raises(TrueupError, match=r"no function 'mak'.*make"):
        own_function(f"{tmp_path}/mine.py:mak")
    with pytest.raises(TrueupError, match="no such file"):
        own_function(f"{tmp_path}/other.py:make")
    (tmp_path / "broken.py").write_text("1/0\n")
    with pytest.raises(TrueupError, match="ZeroDivisionError"):
        own_function(f"{tmp_path}/broken.py:make")
