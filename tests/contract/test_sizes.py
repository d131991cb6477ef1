"""Sizes of the code: folders and modules that a reader can hold in mind. `pytest -s` prints the count."""

import ast
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
# gap, loop, motion 8,900; evaluate, verify, deploy, hardware 15,200; all folders up to training 51,400
MOST_LINES = 76_500
MOST_MODULES = 12  # of a folder


def lines_of(folder: Path) -> dict[Path, int]:
    return {path: len(path.read_text().splitlines()) for path in folder.rglob("*.py")}


def test_the_source_does_not_grow_and_tests_are_more_than_half_of_it():
    source, tests = (sum(lines_of(ROOT / name).values()) for name in ("src", "tests"))
    print(f"\n{source} lines of source, {tests} of tests")
    assert source <= MOST_LINES
    assert tests >= 0.55 * source


def test_tasks_policies_and_calibration_are_tested_by_half_their_lines():
    for name in ("tasks", "policy", "calibrate"):
        source, tests = (sum(lines_of(ROOT / part).values()) for part in (f"src/trueup/{name}", f"tests/{name}"))
        assert tests >= 0.5 * source, name


def test_folders_and_modules_stay_small():
    found = lines_of(ROOT / "src" / "trueup")
    modules = [path for path in found if path.name != "__init__.py"]
    for folder in {path.parent for path in modules}:
        assert sum(path.parent == folder for path in modules) <= MOST_MODULES, folder
    assert 80 <= median(found[path] for path in modules) <= 160
    assert max(found.values()) <= 310


def test_no_class_name_stands_for_two_things():
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in (ROOT / "src" / "trueup").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
