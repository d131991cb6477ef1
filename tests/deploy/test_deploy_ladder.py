"""The ladder: records bound to bundle and robot, refusals that name the command, and how runs are judged."""

import json

import msgspec
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.deploy.ladder.judge import judge_replay, judge_run, judge_shadow
from trueup.deploy.ladder.records import (
    RUNG_CFGS,
    RUNGS,
    Climber,
    RungAnswer,
    RungRecord,
    held,
    identity,
    read_record,
    require_below,
    write_record,
)
from trueup.deploy.ladder.replay import LogReplay
from trueup.deploy.ladder.shadow import Shadowed
from trueup.deploy.session.outcome import RunOutcome
from trueup.deploy.session.recording import Written

PASSED = (RungAnswer(name="run", passed=True, asked="a", found="f"),)
FAILED = (RungAnswer(name="upright", passed=False, asked="a", found="f"),)


@pytest.fixture
def climber(tmp_path):
    return Climber(
        path=tmp_path / "walk.bundle", bundle="b" * 64, robot="go2", model_sha256="m" * 64,
        reference="twin:mild?base=free&seed=3",
    )  # fmt: skip


def record(climber, rung, judged=PASSED, **changes):
    parts = {
        "rung": rung, "bundle": climber.bundle, "name": "walk.bundle", "robot": climber.robot, "below": "",
        "model_sha256": climber.model_sha256, "identity": "" if rung == "replay" else climber.identity,
        "started": "2026-01-01", "seconds": 10.0, "judged": judged,
    }  # fmt: skip
    return write_record(climber, RungRecord(**(parts | changes)))


def climb(climber, below, **changes):
    for rung in RUNGS[: RUNGS.index(below)]:
        record(climber, rung, **changes)


def test_the_first_rung_needs_nothing(climber):
    assert require_below(climber, "replay") == ""


@pytest.mark.parametrize("rung", RUNGS[1:])
def test_every_rung_needs_all_below_it(climber, rung):
    climb(climber, rung)
    assert len(require_below(climber, rung)) == 64
    for lower in RUNGS[: RUNGS.index(rung)]:
        place = climber.place(lower)
        kept = place.read_bytes()
        place.unlink()
        with pytest.raises(TrueupError, match=f"rung '{rung}' needs rung '{lower}'"):
            require_below(climber, rung)
        place.write_bytes(kept)


def test_the_refusal_has_the_command_for_the_missing_rung(climber):
    with pytest.raises(TrueupError, match=r"`trueup deploy .*walk.bundle --rung replay`"):
        require_below(climber, "full")
    climb(climber, "hang")
    with pytest.raises(TrueupError, match=r"--rung hang --driver 'twin:mild\?seed=3&base=fixed'`"):
        require_below(climber, "full")


def test_a_rung_that_failed_does_not_count_and_says_what_failed(climber):
    climb(climber, "ground")
    record(climber, "hang", FAILED)
    with pytest.raises(TrueupError, match=r"was not passed \(upright\)"):
        require_below(climber, "ground")


def test_a_rung_that_was_not_judged_does_not_count(climber):
    record(climber, "replay", ())
    with pytest.raises(TrueupError, match="nothing was judged"):
        require_below(climber, "shadow")


@pytest.mark.parametrize("name", ["bundle", "robot", "model_sha256", "identity"])
def test_a_record_of_something_else_does_not_count(climber, name):
    climb(climber, "ground")
    record(climber, "hang", **{name: "another"})
    with pytest.raises(TrueupError, match=f"another {name} 'another'"):
        require_below(climber, "ground")


def test_an_edited_record_is_refused(climber):
    climb(climber, "hang")
    place = record(climber, "shadow", FAILED)
    said = json.loads(place.read_text())
    said["judged"][0]["passed"] = True
    place.write_text(json.dumps(said))
    with pytest.raises(TrueupError, match="changed after it was written"):
        require_below(climber, "hang")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 7}', "\x00"])
def test_another_file_is_no_record(climber, text):
    place = record(climber, "replay")
    place.write_text(text)
    with pytest.raises(TrueupError, match=r"replay.json"):
        read_record(place)


def test_records_of_two_robots_do_not_meet(climber):
    other = Climber(**{**vars(climber), "reference": "unitree:eth0"})
    climb(climber, "ground")
    assert climber.place("hang") != other.place("hang")
    with pytest.raises(TrueupError, match="needs rung 'shadow'"):  # replay needs no robot
        require_below(other, "ground")


@pytest.mark.parametrize(
    ("reference", "who"),
    [
        ("twin:mild", "twin:mild?seed=0"),
        ("twin:mild?base=free&seed=3&drop=0.1&hz=500", "twin:mild?seed=3"),
        ("twin:mild?seed=3&base=fixed", "twin:mild?seed=3"),
        ("twin@127.0.0.1:7000", "twin@127.0.0.1:7000"),
        ("unitree:eth0?domain=1", "unitree:eth0"),
        ("feetech:/dev/ttyUSB0", "feetech:/dev/ttyUSB0"),
    ],
)
def test_a_robot_is_the_same_however_it_is_held_or_spoken_to(reference, who):
    assert identity(reference) == who


def test_holding_a_twin_changes_its_base_and_nothing_else():
    assert held("twin:mild?base=free&seed=3", "fixed") == "twin:mild?seed=3&base=fixed"
    assert held("twin:mild", "free") == "twin:mild?base=free"
    assert held("unitree:eth0", "free") == "unitree:eth0"


def test_records_come_back_as_they_were_written(climber):
    place = record(climber, "full", uncertified="no certificate", allowed=("model: x",), settings={"smoothing": 0.3})
    found = read_record(place)
    assert found.passed
    assert (found.uncertified, found.allowed, found.settings) == ("no certificate", ("model: x",), {"smoothing": 0.3})
    assert found.sealed() == found
    assert msgspec.json.decode(place.read_bytes())["rung"] == "full"


def test_rungs_are_softer_the_lower_they_are():
    hang, ground, full = (RUNG_CFGS[rung] for rung in ("hang", "ground", "full"))
    assert (hang.gain, hang.torque, hang.speed, hang.trips) == (0.2, 0.8, 0.3, False)
    assert (ground.gain, ground.torque, ground.speed, ground.trips) == (1.0, 0.8, 0.3, True)
    assert (full.gain, full.torque, full.speed, full.trips) == (1.0, 1.0, None, True)


# --- judging ---
GOOD = RunOutcome(ended="done", seconds=20.0, steps=1000, distance_median=0.6, tilt_rad=0.1, late_ms=(0.1, 1.0, 2.0))
ON_DISK = Written(1000, 0, "")


def failures(judged):
    return {one.name for one in judged if not one.passed}


def outcome(**changes):
    return RunOutcome(**({**vars(GOOD)} | changes))


def test_a_good_run_passes_every_rung():
    for rung in ("hang", "ground", "full"):
        assert failures(judge_run(rung, GOOD, ON_DISK, floating=True, tap={"commands": 9})) == set()


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({"ended": "tripped", "guard": "tilt", "reason": "leans"}, {"run"}),
        ({"ended": "estop"}, {"run"}),
        ({"seconds": 4.0}, {"run"}),
        ({"misses": 11}, {"deadline"}),
        ({"outside": {"gyro": 0.06}, "first_outside": {"gyro": "gyro x is 9"}}, {"range"}),
        ({"outside": {"gyro": 0.04}, "first_outside": {"gyro": "gyro x is 9"}}, set()),
        ({"distance_median": 2.5}, {"distance"}),
        ({"tilt_rad": 1.2}, {"upright"}),
        ({"ended": "interrupted"}, set()),
        ({"distance_median": float("nan"), "tilt_rad": float("nan")}, set()),
    ],
)
def test_a_run_on_the_ground_is_judged_by_what_it_showed(changes, failed):
    assert failures(judge_run("ground", outcome(**changes), ON_DISK, floating=True)) == failed


def test_hanging_what_it_sees_is_not_judged():
    odd = outcome(outside={"gyro": 0.9}, first_outside={"gyro": "gyro x is 9"}, distance_median=9.0, tilt_rad=1.5)
    assert failures(judge_run("hang", odd, ON_DISK, floating=True)) == set()


def test_an_arm_cannot_fall():
    assert failures(judge_run("full", outcome(tilt_rad=3.0), ON_DISK, floating=False)) == set()


@pytest.mark.parametrize("written", [Written(10, 1, ""), Written(10, 0, "No space left on device")])
def test_a_run_that_is_not_on_disk_is_not_passed(written):
    assert failures(judge_run("full", GOOD, written, floating=True)) == {"recording"}


@pytest.mark.parametrize("name", ["nonfinite", "negative_gain", "malformed", "beyond_limits"])
def test_one_bad_command_at_a_twins_motors_is_one_too_many(name):
    assert failures(judge_run("full", GOOD, ON_DISK, floating=True, tap={"commands": 99, name: 1})) == {"motors"}


def test_replay_is_judged_by_golden_sequences_and_the_log():
    log = LogReplay(steps=100, in_range=0.4, outside=("gyro x is 9",), distance_median=1.0, agreement=np.nan)
    assert failures(judge_replay(1e-6, None)) == set()
    assert failures(judge_replay(2e-5, None)) == {"golden"}
    assert failures(judge_replay(float("nan"), None)) == {"golden"}
    assert failures(judge_replay(1e-6, log)) == {"log"}


def test_a_shadow_is_judged_by_its_range_only_where_somebody_commands():
    odd = outcome(outside={"gyro": 0.9}, first_outside={"gyro": "gyro x is 9"})
    alone = Shadowed(outcome=odd, compared=0, agreement=np.nan, by_joint={}, correlation=np.nan, plausible=1.0)
    assert failures(judge_shadow(alone, ON_DISK)) == set()
    assert failures(judge_shadow(Shadowed(**{**vars(alone), "compared": 100}), ON_DISK)) == {"range"}
