"""A few faults of `benchmarks/deploy_faults.py` over real sockets and processes, counted at a twin's motors."""

import sys
from pathlib import Path
from typing import Any

import pytest
from made_deploys import standing_bundle

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from faults.cases import CASES
from faults.run import BAD, Bench, run_case

from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import load_robot
from trueup.twin.firmware import Twin

pytestmark = pytest.mark.medium
STATE_TIMEOUT_MS = 100.0  # the longest that any state is trusted; the benchmark asks for two control periods


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    robot, serve = load_robot("go2"), ServeCfg(preset="mild", base="free", command_hz=500.0)
    return Bench(
        bundle=standing_bundle(tmp_path_factory.mktemp("stand") / "stand.bundle"),
        robot=robot,
        serve=serve,
        twins=(Twin(robot, serve),),
        guard=GuardCfg(torque_fraction=1.0, linger_s=0.2, voltage_stop=22.0),
    )


def run(bench: Bench, name: str, *, is_guarded: bool = True) -> dict[str, Any]:
    """One run; on a machine that is so busy that the guard trips before the fault, another."""
    case = next(case for case in CASES if case.name == name)
    for repeat in (1, 2, 3):
        found = run_case(bench, case, repeat, is_guarded=is_guarded)
        if found["fault"] and not found["early"]:
            return found
    pytest.fail(f"stopped before the fault, three times: {found['who']}: {found['why']}")


def bad_commands(found: dict[str, Any]) -> int:
    return sum(found[name] for name in BAD)


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("drop 100 % of states", "guard: stale"),
        ("position NaN", "guard: nonfinite"),
        ("encoder offset 0.5 rad", "guard: jump"),
        ("quaternion zero", "guard: implausible"),
        ("battery at 20 V", "guard: voltage"),
        ("policy NaN", "session: monitor"),
        ("policy SIGKILL", "guard: silence"),
        ("policy SIGSTOP", "guard: silence"),
    ],
)
def test_a_visible_fault_ends_in_damping_at_the_motors(bench: Bench, name: str, who: str) -> None:
    found = run(bench, name)
    assert found["stopped"]
    assert found["who"] == who
    assert found["by"] == "command"
    assert found["safe_ms"] < STATE_TIMEOUT_MS
    assert bad_commands(found) == 0


def test_another_commander_on_the_line_is_found(bench: Bench) -> None:
    found = run(bench, "second commander on our line")
    assert found["who"] == "guard: commander"
    assert bad_commands(found) == 0


@pytest.mark.parametrize("name", ["drop 10 %", "disk full"])
def test_a_tolerable_fault_stops_nothing(bench: Bench, name: str) -> None:
    found = run(bench, name)
    assert not found["stopped"], found["why"]
    assert bad_commands(found) == 0
    assert found["tilt"] < 0.3
    assert (found["unrecorded"] > 0) == (name == "disk full")


def test_without_the_guard_the_robots_own_watchdog_damps(bench: Bench) -> None:
    found = run(bench, "guard SIGKILL")
    assert found["by"] == "watchdog"
    assert 90.0 < found["safe_ms"] < 150.0
    assert found["who"] == "session: driver"


def test_a_plain_loop_sends_numbers_that_are_none(bench: Bench) -> None:
    found = run(bench, "position NaN", is_guarded=False)
    assert found["nonfinite"] > 100  # half a second at 500 Hz
    assert found["by"] == "watchdog"
