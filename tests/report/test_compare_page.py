"""Runs side by side: what differs is said, what was measured has intervals."""

import json

import pytest
from opened import opened

import trueup as tu
from trueup.core.errors import TrueupError
from trueup.train.compare import differences, read_runs
from trueup.train.config import RunCfg
from trueup.train.folder import RunFolder


def _run(path, seed, error):
    run = RunFolder(path)
    run.create(RunCfg(task="go2-velocity", nenv=64, threads=1, seed=seed))
    term = next(iter(tu.load_task("go2-velocity").rewards))
    numbers = {"reward": 0.02, "velocity_error": error, "terminated": 0.0, f"reward/{term}": 0.5}
    rows = [numbers | {"steps": 1e5 * k, "elapsed_s": 10.0 * k, "iteration": float(k)} for k in (1, 2, 3)]
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    last = {"steps": 3e5, "error": error, "error_se": 0.01, "falls": 2, "episodes": 100, "score": 0.8}
    (run.path / "assessments.jsonl").write_text(json.dumps(last) + "\n")
    return run.path


def test_only_settings_that_differ_are_listed(tmp_path):
    runs = read_runs([_run(tmp_path / "a", 0, 0.2), _run(tmp_path / "b", 7, 0.3)])
    assert differences(runs) == {"seed": ["0", "7"]}


def test_one_run_is_no_comparison(tmp_path):
    with pytest.raises(TrueupError, match="two or more"):
        read_runs([_run(tmp_path / "a", 0, 0.2)])


@pytest.mark.medium
def test_the_page_shows_curves_settings_intervals_and_terms(tmp_path):
    runs = [_run(tmp_path / "a", 0, 0.2), _run(tmp_path / "b", 7, 0.3)]
    with opened(tu.compare(runs, tmp_path / "page.html")) as page:
        assert page.complaints == []
        assert len(page.query_selector_all(".plot")) == 4
        text = page.inner_text("main")
    for words in ("0.180 to 0.220", "2 of 100", "seed", "Reward terms"):
        assert words in text
