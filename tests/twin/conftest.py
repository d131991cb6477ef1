from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from twin_bench import Twins


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[Twins]:
    all_of_them = Twins(tmp_path)
    yield all_of_them
    all_of_them.close()
