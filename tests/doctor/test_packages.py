"""What is installed against what is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.doctor.packages import CORE, satisfies, wanted_packages


@pytest.mark.parametrize(
    ("version", "bounds", "fits"),
    [
        ("3.17.0", ">=3.17", True),
        ("3.9.1", ">=3.17", False),  # numbers, not letters
        ("3.17", ">=3.17.0", True),
        ("2.13.0+cpu", ">=2.13.0", True),
        ("2.13.0rc1", ">=2.14", False),
        ("1.2", "", True),
    ],
)
def test_bounds_compare_release_numbers(version: str, bounds: str, fits: bool):
    assert satisfies(version, bounds) is fits


def test_requirements_are_read_with_their_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "demo_robot-1.0.dist-info"
    folder.mkdir()
    lines = [
        "Metadata-Version: 2.4",
        "Name: demo_robot",
        "Version: 1.0",
        "Requires-Dist: numpy>=1.0",
        "Requires-Dist: no-such-thing>=2; extra == 'sim'",
        'Requires-Dist: pytest>=9999 ; extra == "dev"',
        "Requires-Dist: demo_robot[sim]; extra == 'all'",
    ]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {package.name: package for package in wanted_packages("demo_robot")}
    assert set(found) == {"numpy", "no-such-thing", "pytest"}
    assert (found["numpy"].extra, found["numpy"].bounds, found["numpy"].fits) == (CORE, ">=1.0", True)
    assert (found["no-such-thing"].extra, found["no-such-thing"].installed) == ("sim", None)
    assert not found["no-such-thing"].fits
    assert (found["pytest"].extra, found["pytest"].fits) == ("dev", False)


def test_a_distribution_that_is_not_installed_asks_for_nothing():
    assert wanted_packages("no-such-distribution") == []
