"""`tu.deploy`: a go2 climbs the whole ladder on a lock-step twin behind the motor guard, and is refused in between."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from made_deploys import standing_bundle

import trueup as tu
from trueup.core.errors import TrueupError
from trueup.deploy.ladder.records import RUNGS, read_record
from trueup.deploy.ladder.replay import replay_recording
from trueup.deploy.session.recording import read_rows
from trueup.policy.bundle.certificate import Certificate, certificate_path, write_certificate
from trueup.policy.bundle.passport import RobotIdentity

AIR, GROUND = "twin:ideal?lockstep=1", "twin:ideal?base=free&lockstep=1"
ON = {"replay": None, "shadow": GROUND, "hang": AIR, "ground": GROUND, "full": GROUND}


@pytest.fixture(scope="module")
def climbed(tmp_path_factory):
    """Every rung of the ladder, by name."""
    bundle = standing_bundle(tmp_path_factory.mktemp("go2") / "stand.bundle", swing=0.1)
    found = {}
    for rung in RUNGS:
        asked = ("forward=0.2",) if rung in ("hang", "ground", "full") else ()
        found[rung] = tu.deploy(
            bundle.path, driver=ON[rung], rung=rung, command=asked, uncertified=True, out=bundle.path.parent / rung
        )
    return bundle, found


@pytest.mark.medium
def test_a_policy_that_stands_climbs_the_whole_ladder(climbed):
    _, found = climbed
    for rung, deployed in found.items():
        assert deployed.passed, (rung, deployed.record.judged)
        assert deployed.exit_code == 0
        assert read_record(deployed.path) == deployed.record
    assert [found[rung].record.below for rung in RUNGS[1:]] == [found[rung].record.sha256 for rung in RUNGS[:-1]]


@pytest.mark.medium
def test_each_rung_commands_what_it_allows(climbed):
    bundle, found = climbed
    rows = {rung: read_rows(found[rung].folder / "policy.rows") for rung in ("hang", "ground", "full")}
    kp = {rung: one.columns["sent_kp"][one.columns["phase"][:, 0] == 1] for rung, one in rows.items()}
    assert kp["hang"].max() == pytest.approx(0.2 * 40.0)
    assert kp["ground"].max() == pytest.approx(40.0)
    assert found["hang"].outcome.seconds == 10.0
    assert found["full"].outcome.seconds == 20.0
    assert rows["ground"].header.bundle_hash == bundle.hash
    assert "has no certificate" in found["full"].record.uncertified


@pytest.mark.medium
def test_nothing_bad_reached_the_motors_and_the_guard_kept_its_recording(climbed):
    for rung in ("hang", "ground", "full"):
        deployed = climbed[1][rung]
        assert {one.name for one in deployed.record.judged} >= {"run", "deadline", "motors", "recording"}
        assert deployed.guard.tap["beyond_limits"] == deployed.guard.tap["nonfinite"] == 0
        assert (deployed.folder / "robot.mcap").is_file()


@pytest.mark.medium
@pytest.mark.parametrize("rung", ["shadow", "hang", "ground", "full"])
def test_every_recording_replays_bit_for_bit(climbed, rung):
    assert replay_recording(climbed[1][rung].folder).same


@pytest.mark.medium
def test_a_shadow_sends_nothing(climbed):
    deployed = climbed[1]["shadow"]
    assert deployed.shadowed.compared == 0
    assert deployed.guard is None
    assert deployed.outcome.moved >= 0.0


@pytest.mark.medium
def test_results_show_themselves(climbed, tmp_path):
    from trueup.report.operate.deploy import deploy_page, facts

    deployed = climbed[1]["ground"]
    assert "control steps" in facts(deployed)["policy"]
    text = deploy_page(deployed).write(tmp_path / "x.html").read_text()
    assert "rung ground passed" in text
    assert "Uncertified" in text


# --- refusals ---
@pytest.fixture
def bundle(tmp_path):
    return standing_bundle(tmp_path / "stand.bundle")


def climb(bundle, rung, **options):
    return tu.deploy(bundle.path, rung=rung, driver=options.pop("driver", ON[rung]), **options)


def test_no_certificate_no_start(bundle):
    with pytest.raises(TrueupError, match="has no certificate; make one with `trueup verify"):
        climb(bundle, "full")


def test_a_certificate_that_did_not_pass_is_refused_and_one_that_did_is_not(bundle):
    from trueup.policy.bundle.certificate import GateCheck

    def certificate(state):
        check = GateCheck(name="success", state=state, asked="95 %", found="80 %")
        return Certificate(
            bundle=bundle.hash, name="stand", robot="go2", task="stand", trials=1, seed=0, engines=(), inputs={},
            checks=(check,),
        )  # fmt: skip

    write_certificate(certificate("fail"), certificate_path(bundle.path))
    with pytest.raises(TrueupError, match="did not pass the gate: success"):
        climb(bundle, "full")
    write_certificate(certificate("pass"), certificate_path(bundle.path))
    with pytest.raises(TrueupError, match="needs rung 'replay'"):
        climb(bundle, "full")


def test_a_rung_without_those_below_is_refused_with_the_command(bundle):
    with pytest.raises(TrueupError, match=r"rung 'full' needs rung 'replay'.*--rung replay`"):
        climb(bundle, "full", uncertified=True)


def test_a_rung_without_a_robot_is_refused(bundle):
    with pytest.raises(TrueupError, match="needs a robot: --driver"):
        climb(bundle, "shadow", driver=None)


@pytest.mark.parametrize(("rung", "driver"), [("hang", GROUND), ("ground", AIR), ("full", "twin:ideal")])
def test_a_twin_must_be_held_as_the_rung_says(bundle, rung, driver):
    with pytest.raises(TrueupError, match=r"needs the twin .*base="):
        climb(bundle, rung, driver=driver, uncertified=True)


def test_a_bundle_for_another_robot_is_refused(bundle):
    with pytest.raises(TrueupError, match="preflight refuses"):
        climb(bundle, "replay", robot="z1")


def test_a_robot_with_another_model_is_refused_unless_it_is_allowed(tmp_path):
    other = standing_bundle(tmp_path / "other.bundle", robot_identity=RobotIdentity(name="go2", model_sha256="0" * 64))
    with pytest.raises(TrueupError, match=r"(?s)model: .*--allow model"):
        climb(other, "replay")
    deployed = climb(other, "replay", allow=("model",))
    assert deployed.passed
    assert "model" in deployed.record.allowed[0]


def test_a_command_beyond_the_rungs_speed_is_refused(bundle):
    climb(bundle, "replay")
    with pytest.raises(TrueupError, match="outside -0.3 to 0.3"):
        climb(bundle, "shadow", command=("forward=0.5",), speed=0.3)


def test_a_damaged_bundle_is_refused_first(bundle):
    file = bundle.path / "policy.onnx"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(TrueupError, match="hash does not fit"):
        climb(bundle, "replay")


# --- ends ---
@pytest.mark.medium
def test_a_fall_trips_and_is_recorded_as_a_failure(tmp_path):
    """A policy that folds one side's legs: the guard stops it, the record says so, the next rung stays closed."""
    bundle = standing_bundle(tmp_path / "fall.bundle", swing=4.0)
    for rung in ("replay", "shadow", "hang"):
        assert climb(bundle, rung, uncertified=True).passed
    deployed = climb(bundle, "ground", uncertified=True, command=("forward=0.3",))
    assert (deployed.exit_code, deployed.passed) == (3, False)
    assert deployed.outcome.ended == "tripped"
    assert deployed.outcome.reason
    with pytest.raises(TrueupError, match="was not passed"):
        climb(bundle, "full", uncertified=True)


@pytest.mark.medium
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_process_damps_and_ends_in_order(climbed, tmp_path, number):
    bundle, _ = climbed
    code = (
        "import sys\nfrom trueup.deploy.verbs import DeployVerb\nfrom trueup.report.operate.deploy import run_deploy\n"
        f"sys.exit(run_deploy(DeployVerb({str(bundle.path)!r}, driver='twin:ideal?base=free', rung='ground', "
        f"uncertified=True, seconds=0.0, out=__import__('pathlib').Path({str(tmp_path / 'run')!r}))))"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    rows = tmp_path / "run" / "policy.rows"
    until = time.monotonic() + 60.0
    while time.monotonic() < until and not (rows.exists() and rows.stat().st_size > 100_000):
        time.sleep(0.1)
    os.kill(child.pid, number)
    said, _ = child.communicate(timeout=30)
    found = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    stops = [event for event in found if "damping was asked for" in json.dumps(event)]
    if child.returncode == 3:  # a loaded computer may trip the guard first
        assert "stopped after" in said
    else:
        assert child.returncode in (0, 1), said
        assert "interrupted after" in said
        assert stops, found


@pytest.mark.medium
def test_a_gamepad_that_is_not_there_is_refused_before_the_robot_is_reached(climbed):
    bundle, _ = climbed
    with pytest.raises(TrueupError, match="plugged in"):
        climb(bundle, "hang", uncertified=True, gamepad="/dev/input/js99")


@pytest.mark.medium
def test_each_rung_names_the_driver_that_the_next_one_takes(climbed):
    _, found = climbed
    assert [deployed.next_driver for deployed in found.values()] == [
        "",
        "twin:ideal?lockstep=1&base=fixed",
        *3 * ["twin:ideal?lockstep=1&base=free"],
    ]


def test_a_run_that_is_refused_leaves_no_folder_behind(bundle):
    climb(bundle, "replay")
    with pytest.raises(TrueupError, match="no twin preset"):
        climb(bundle, "shadow", driver="twin:wron")
    with pytest.raises(TrueupError, match="silent"):
        climb(bundle, "shadow", driver="twin@127.0.0.1:9")
    assert not list(bundle.path.with_name(f"{bundle.path.name}.deployed").glob("*"))
