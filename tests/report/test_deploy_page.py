"""What deploy shows: the verdict in a sentence, figures by name, the page with and without a recording."""

from pathlib import Path

import numpy as np
import pytest
from made_deploys import HEADER
from rich.console import Console

from trueup.deploy.deploy import Deployed
from trueup.deploy.ladder.records import RungAnswer, RungRecord
from trueup.deploy.ladder.replay import LogReplay
from trueup.deploy.ladder.shadow import Shadowed
from trueup.deploy.session.outcome import RunOutcome
from trueup.deploy.session.recording import RowWriter
from trueup.deploy.verbs import ReplayVerb
from trueup.report.operate.deploy import deploy_page, facts, next_line, print_deployed, run_replay, verdict_line

RUN = RunOutcome(
    ended="done", seconds=20.0, steps=1000, outside={"gyro": 0.02}, first_outside={"gyro": "gyro x is 3, was -1 to 1"},
    distance_median=0.62, distance_max=1.4, tilt_rad=0.1, late_ms=(0.1, 1.25, 2.0), step_ms=(0.8, 1.0, 6.0), misses=1,
)  # fmt: skip


def deployed(passed=True, rung="ground", **parts):
    judged = (RungAnswer(name="range", passed=passed, asked="inside [95 %]", found="gyro <outside>"),)
    record = RungRecord(
        rung=rung, bundle="b" * 64, name="walk.bundle", robot="go2", model_sha256="m" * 64,
        identity="twin:mild?seed=0", below="", started="2026-01-01", seconds=20.0, judged=judged,
        uncertified=parts.pop("uncertified", ""), allowed=parts.pop("allowed", ()),
    ).sealed()  # fmt: skip
    path = Path("/x/walk.bundle.ladder/twin/ground.json")
    return Deployed(record=record, path=path, **({"outcome": RUN} | parts))


def printed(result) -> str:
    console = Console(width=200, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    print_deployed(result, console)
    return console.export_text()


def test_the_verdict_says_what_happened():
    assert verdict_line(deployed()) == "rung ground passed: walk.bundle on twin:mild?seed=0"
    assert verdict_line(deployed(passed=False)) == "rung ground not passed: range"
    tripped = RunOutcome(ended="tripped", guard="tilt", reason="leans by 70 deg", seconds=3.2)
    assert verdict_line(deployed(outcome=tripped)) == "stopped after 3.2 s (tilt): leans by 70 deg"


@pytest.mark.parametrize(("ended", "passed", "code"), [("done", True, 0), ("done", False, 1), ("tripped", False, 3)])
def test_exit_codes(ended, passed, code):
    assert deployed(passed=passed, outcome=RunOutcome(ended=ended)).exit_code == code


def test_the_next_rung_is_named_until_the_last():
    bundle = Path("walk.bundle")
    command = "trueup deploy walk.bundle --rung full --driver "
    assert next_line(deployed(next_driver="twin:mild?base=free"), bundle) == f"{command}'twin:mild?base=free'"
    assert next_line(deployed(next_driver="unitree:eth0"), bundle) == f"{command}unitree:eth0"
    assert next_line(deployed(uncertified="no certificate"), bundle) == f"{command}DRIVER --uncertified"
    assert next_line(deployed(rung="full"), bundle) == ""
    assert next_line(deployed(passed=False), bundle) == ""


def test_figures_have_numbers_with_units():
    found = facts(deployed(startup={"imports": 0.5, "guard": 0.3, "first command": 0.05, "total": 0.85}))
    assert found["policy"] == "1000 control steps, 20.0 s; 1 late by a period"
    assert found["lateness"] == "median 0.10 ms, 99.9 % 1.25 ms, largest 2.00 ms"
    assert "0.62" in found["training"]
    assert found["  gyro"] == "outside its training range in 2.0%: gyro x is 3, was -1 to 1"
    assert found["start"].startswith("0.85 s to the first command (imports 0.50")


def test_a_shadow_says_how_far_it_agrees():
    seen = Shadowed(outcome=RUN, compared=500, agreement=0.123, by_joint={"hip": 0.1}, correlation=0.98, plausible=1.0)
    assert "0.123 rad RMS" in facts(deployed(shadowed=seen))["agreement"]
    alone = Shadowed(outcome=RUN, compared=0, agreement=np.nan, by_joint={}, correlation=np.nan, plausible=1.0)
    assert "nothing to compare" in facts(deployed(shadowed=alone))["agreement"]


def test_a_log_says_how_much_was_in_range():
    log = LogReplay(steps=100, in_range=0.93, outside=(), distance_median=1.0, agreement=0.2)
    assert facts(deployed(log=log))["log"] == "93.0% of 100 steps in range; targets 0.200 rad RMS from those in the log"


def test_what_is_printed_holds_every_question_and_survives_brackets():
    text = printed(deployed(passed=False, uncertified="no [certificate]"))
    for part in ("range", "failed", "gyro <outside>", "inside [95 %]", "no [certificate]", "ground.json"):
        assert part in text


def test_the_page_escapes_and_warns(tmp_path):
    text = deploy_page(deployed(uncertified="none", allowed=("model: another",))).html()
    assert "gyro &lt;outside&gt;" in text
    assert "Uncertified: none" in text
    assert "Allowed: model: another" in text
    assert "data-figure" not in text  # nothing was recorded


def test_the_page_draws_what_was_recorded(tmp_path):
    writer = RowWriter(tmp_path / "policy.rows", HEADER)
    for k in range(50):
        writer.add(
            tick=k, wall_s=0.02 * k, asked=(0.1, 0.0, 0.0), joint_pos=np.zeros(3), sent_pos=np.ones(3), late_s=1e-3
        )
    writer.close()
    assert deploy_page(deployed(folder=tmp_path)).html().count("data-figure") == 3


def test_a_recording_without_a_policys_steps_is_not_the_same(tmp_path, capsys):
    from made_deploys import toy_bundle

    bundle = toy_bundle(tmp_path / "b")
    header = HEADER.__class__(**{name: getattr(HEADER, name) for name in HEADER.__struct_fields__} | {
        "bundle": str(bundle.path), "bundle_hash": bundle.hash})  # fmt: skip
    RowWriter(tmp_path / "policy.rows", header).close()
    assert run_replay(ReplayVerb(tmp_path / "policy.rows")) == 1
    assert "no control step" in capsys.readouterr().out
