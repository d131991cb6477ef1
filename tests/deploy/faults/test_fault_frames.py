"""What the relay of the fault matrix does to frames, and how a run is judged: by hand."""

import math
import sys
from collections import deque
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from faults.cases import CASES
from faults.frames import Channel, Commander, Frozen, Replay, States, Voltage, quaternion_about, rotated
from faults.relay import BEGAN, DELAY, FAULT
from faults.robot import DAMPING, REFUSED, STIFF, WATCHDOG, MotorLog
from faults.run import judge

from trueup.core.errors import TrueupError
from trueup.hardware import wire
from trueup.hardware.wire import StateReport

N = 2
COUNTS = {"nonfinite": 0, "negative_gain": 0, "malformed": 0, "beyond_limits": 0, "watchdog": 0, "overruns": 0}


def frame(k: int = 1, position: float = 0.5) -> bytes:
    numbers = np.concatenate([[position, -1.0], np.zeros(6), [1.0, 0.0, 0.0, 0.0], np.zeros(6)])
    return wire.encode_report(StateReport(k, 0.002 * k, N, True, 7, 28.0, numbers))


def state_of(data: bytes) -> object:
    return wire.parse_state(wire.decode(data))[0]


def command(k: int = 5) -> bytes:
    return wire.encode_rows(k, 0.0, np.ones((5, N)))


# --- frames ---
def test_a_channel_touches_only_its_ways_and_never_a_hello() -> None:
    fault = Channel(np.random.default_rng(0), ways="up", drop=1.0)
    assert fault(frame(), True, 0.0) == []
    assert fault(command(), False, 0.0) is None
    assert fault(wire.encode(wire.Kind.WELCOME, 0, 0.0, b"x" * 40), True, 0.0) is None


def test_shares_of_frames_are_dropped_and_doubled() -> None:
    for share, sizes in (({"drop": 0.3}, (1, 0)), ({"duplicate": 0.3}, (1, 2))):
        fault = Channel(np.random.default_rng(0), **share)
        found = [1 if (out := fault(frame(), True, 0.0)) is None else len(out) for _ in range(1000)]
        assert set(found) == set(sizes)
        assert found.count(sizes[1]) == pytest.approx(300, abs=50)


def test_reordered_frames_swap_places_and_none_is_lost() -> None:
    fault = Channel(np.random.default_rng(0), reorder=0.5)
    order: list[int] = []
    for k in range(1, 200):
        for _, data in [(0.0, frame(k))] if (out := fault(frame(k), True, 0.0)) is None else out:
            order.append(wire.decode(data).sequence)
    assert sorted(order) == list(range(1, len(order) + 1))
    assert order != sorted(order)


@pytest.mark.parametrize("share", [{"flip": 1.0}, {"truncate": 1.0}])
def test_damaged_frames_are_refused_by_their_checksum(share: dict[str, float]) -> None:
    fault = Channel(np.random.default_rng(0), **share)
    for _ in range(100):
        ((_, data),) = fault(frame(), True, 0.0) or [(0.0, b"")]
        with pytest.raises(TrueupError):
            wire.decode(data)


def test_changed_numbers_travel_under_a_right_checksum() -> None:
    def change(numbers: np.ndarray, njoint: int) -> None:
        numbers[0] = math.nan

    ((_, data),) = States(np.random.default_rng(0), change)(frame(), True, 0.0) or []
    state = state_of(data)
    assert math.isnan(state.joint_pos[0])
    assert state.joint_pos[1] == -1.0
    assert state.sequence == 1
    ((_, data),) = Voltage(20.0)(frame(), True, 0.0) or []
    assert state_of(data).voltage == 20.0


def test_a_frozen_sensor_repeats_its_numbers_while_number_and_clock_go_on() -> None:
    fault = Frozen()
    fault(frame(1, 0.5), True, 0.0)
    ((_, data),) = fault(frame(2, 0.7), True, 0.0) or []
    state = state_of(data)
    assert (state.sequence, state.joint_pos[0]) == (2, 0.5)
    one = Frozen(joint=1)
    one(frame(1, 0.5), True, 0.0)
    ((_, data),) = one(frame(2, 0.7), True, 0.0) or []
    assert state_of(data).joint_pos[0] == 0.7


def test_replayed_frames_come_beside_instead_or_renumbered() -> None:
    memory = deque([frame(1, 0.1)])
    beside, instead, dressed = (Replay(how, memory)(frame(9, 0.9), True, 0.0) for how in ("beside", "instead", "new"))
    assert [wire.decode(data).sequence for _, data in beside] == [9, 1]
    assert [wire.decode(data).sequence for _, data in instead] == [1]
    state = state_of(dressed[0][1])
    assert (state.sequence, state.joint_pos[0]) == (9, 0.1)


def test_a_second_commander_is_numbered_ahead() -> None:
    fault = Commander(np.zeros(N), np.ones(N), np.ones(N))
    out = fault(command(5), False, 0.0)
    assert [wire.decode(data).sequence for _, data in out] == [5, 6]
    assert fault(frame(), True, 0.0) is None


def test_a_turned_imu_leans_by_the_angle() -> None:
    quat = rotated(np.array([1.0, 0.0, 0.0, 0.0]), quaternion_about(0, 90.0))
    assert quat == pytest.approx([math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0])
    twice = rotated(quat, quaternion_about(0, 90.0))
    assert twice == pytest.approx([0.0, 1.0, 0.0, 0.0])


def test_faults_have_names_of_their_own_and_one_cause() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 50
    for case in CASES:
        assert sum((case.frames is not None, case.act is not None, bool(case.output))) == 1, case.name


# --- judging ---
def log(events: list[tuple[float, int]], **counts: int) -> MotorLog:
    time_s = np.arange(100.0, 101.0, 0.002)
    return MotorLog(
        event_s=np.array([at for at, _ in events]),
        event=np.array([kind for _, kind in events]),
        time_s=time_s,
        torque=np.where(time_s < 100.5, 0.2, 0.7),
        tilt=np.full(len(time_s), 0.1),
        counts={**COUNTS, "diverged": 0, **counts},
        target=np.zeros((len(events), N)),
    )


def judged(events: list[tuple[float, int]], ended: str = "tripped", end: float = 101.0, **counts: int) -> dict:
    plan = [0.0] * 4
    plan[BEGAN], plan[FAULT], plan[DELAY] = 100.0, 100.4, 0.4
    trip = {"guard": "stale", "reason": "old", "time_s": 100.43} if ended == "tripped" else {}
    said = {"ended": ended, "guard": "", "reason": ""}
    return judge(log(events, **counts), plan, said, trip, end, is_guarded=ended != "plain")


def test_safe_is_the_damping_that_nothing_stiff_follows() -> None:
    found = judged([(100.39, STIFF), (100.41, DAMPING), (100.42, STIFF), (100.435, DAMPING), (100.44, DAMPING)])
    assert found["safe_ms"] == pytest.approx(35.0)
    assert found["late_ms"] == pytest.approx(5.0)
    assert (found["who"], found["by"]) == ("guard: stale", "command")
    assert found["peak_torque"] == pytest.approx(0.7)  # within 0.3 s of the fault


def test_a_refused_command_is_neither_stiff_nor_safe() -> None:
    found = judged([(100.39, STIFF), (100.41, REFUSED), (100.49, WATCHDOG), (100.5, REFUSED)], nonfinite=2)
    assert found["safe_ms"] == pytest.approx(90.0)
    assert (found["by"], found["nonfinite"]) == ("watchdog", 2)


def test_a_run_that_stays_stiff_is_never_safe() -> None:
    found = judged([(100.39, STIFF), (100.9, STIFF), (101.5, DAMPING)])  # damped after we looked
    assert math.isnan(found["safe_ms"])
    assert math.isnan(judged([(100.39, STIFF), (100.9, STIFF)], "done")["safe_ms"])


def test_a_trip_before_the_fault_is_told_apart() -> None:
    plan = [100.0, 100.4, 0.0, 0.4]
    trip = {"guard": "tilt", "reason": "it falls", "time_s": 100.2}
    events = [(100.1, STIFF), (100.2, DAMPING)]
    found = judge(log(events), plan, {"ended": "tripped", "guard": "tilt", "reason": ""}, trip, 101.0, is_guarded=True)
    assert found["early"]
