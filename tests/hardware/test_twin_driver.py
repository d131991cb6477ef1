"""The driver and the twin's process, over the real socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.hardware import wire
from trueup.hardware.driver import Command, Driver, RobotState
from trueup.hardware.drivers.open import open_driver, twin_options
from trueup.hardware.drivers.twin import TwinDriver
from trueup.hardware.twin_cfg import FaultCfg
from trueup.hardware.wire import Kind
from trueup.robot.load import Robot, load_robot, zoo_names
from trueup.robot.model import ModelCfg
from trueup.twin.tap import read_tap
from trueup.world.batch import BatchSim, SimCfg

medium = pytest.mark.medium
PENDULUM = load_robot("pendulum")


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def opened(reference: str, robot: Robot = PENDULUM) -> TwinDriver:
    driver = open_driver(reference, robot)
    assert isinstance(driver, TwinDriver)
    driver.connect()
    return driver


@pytest.fixture
def twin() -> Iterator[TwinDriver]:
    """An ideal pendulum in lock-step."""
    driver = opened("twin:ideal?lockstep=1")
    yield driver
    driver.close()


def go_to(robot: Robot, goal: np.ndarray | float) -> Command:
    n = robot.spec.njoint
    zero, pose = np.zeros(n), np.broadcast_to(goal, n).astype(float)
    return Command(target_pos=pose, target_vel=zero, kp=robot.spec.kp, kd=robot.spec.kd, torque=zero)


def push(torque: float) -> Command:
    zero = np.zeros(1)
    return Command(target_pos=zero, target_vel=zero, kp=zero, kd=zero, torque=np.array([torque]))


def flat(state: RobotState) -> np.ndarray:
    parts = [state.joint_pos, state.joint_vel, state.joint_torque, state.joint_temperature, [state.voltage]]
    if state.imu_gyro is not None and state.imu_acc is not None:
        parts += [state.imu_gyro, state.imu_acc]
    return np.concatenate([[state.sequence, state.time_s], *parts])


def wave(driver: TwinDriver, robot: Robot, steps: int) -> np.ndarray:
    """Every number of every state under a fixed plan."""
    rows = [flat(driver.read())]
    for k in range(steps):
        driver.write(go_to(robot, robot.spec.default_pose + 0.1 * np.sin(0.05 * k)))
        rows.append(flat(driver.read()))
    return np.array(rows)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def pid_of(driver: TwinDriver) -> int:
    return driver.twin_pid


# --- references ---
def test_references_are_read() -> None:
    options = twin_options("my/p.toml?seed=7&lockstep=1&hz=400&base=free&timeout=0.2&drop=0.1&corrupt=0.2&tap=a%26b")
    assert (options.preset, options.seed, options.lockstep) == ("my/p.toml", 7, True)
    assert (options.command_hz, options.base, options.command_timeout_s) == (400.0, "free", 0.2)
    assert options.faults == FaultCfg(drop=0.1, corrupt=0.2)
    assert options.tap == "a&b"


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("twins:mild", "did you mean 'twin:'"),
        ("usb:0", "twin:PRESET"),
        ("unitree", "no driver 'unitree'"),
        ("twin:", "needs a preset"),
        ("twin:mild?sed=7", "did you mean 'seed'"),
        ("twin:mild?seed=x", "seed"),
        ("twin:mild?lockstep=maybe", "0 or 1"),
        ("twin@localhost", "HOST:PORT"),
        ("twin@localhost:99999", "HOST:PORT"),
    ],
)
def test_a_wrong_reference_says_what_is_known(reference: str, words: str) -> None:
    with pytest.raises(TrueupError, match=words):
        open_driver(reference, PENDULUM)


def test_rate_and_mode_of_the_caller_hold_unless_the_reference_says_otherwise() -> None:
    driver = open_driver("twin:mild", PENDULUM, command_hz=500.0, lockstep=True)
    assert isinstance(driver, TwinDriver)
    assert (driver.realtime, driver.command_hz) == (False, 500.0)
    other = open_driver("twin:mild?hz=100&lockstep=0", PENDULUM, command_hz=500.0, lockstep=True)
    assert isinstance(other, TwinDriver)
    assert (other.realtime, other.command_hz) == (True, 100.0)


def test_an_unconnected_driver_says_so() -> None:
    driver: Driver = open_driver("twin:mild", PENDULUM)
    with pytest.raises(TrueupError, match="connect"):
        driver.read()
    with pytest.raises(TrueupError, match="connect"):
        driver.damp()
    driver.close()


# --- lock-step ---
@medium
@pytest.mark.parametrize("robot", zoo_names())
def test_the_servo_follows_its_commands_on_every_robot(robot: str) -> None:
    loaded = load_robot(robot)
    with open_twin("twin:ideal?lockstep=1", loaded) as driver:
        start = driver.read().joint_pos
        goal = np.clip(start + 0.1, loaded.spec.position_low, loaded.spec.position_high)
        for k in range(400):
            driver.write(go_to(loaded, start + (goal - start) * min(1.0, k / 200)))
            state = driver.read()
    sag = np.abs(state.joint_torque) / loaded.spec.kp  # what the servo needs to hold against gravity
    assert np.allclose(state.joint_pos, goal, atol=0.002 + sag.max())
    servo = loaded.spec.kp * (goal - state.joint_pos) - loaded.spec.kd * state.joint_vel
    assert np.allclose(state.joint_torque, servo, atol=0.05)
    assert state.time_s == pytest.approx(2.0)
    assert (state.imu_quat is None) == (loaded.spec.imu is None)


def open_twin(reference: str, robot: Robot = PENDULUM) -> TwinDriver:
    driver = open_driver(reference, robot)
    assert isinstance(driver, TwinDriver)
    return driver


@medium
def test_time_passes_only_with_commands(twin: TwinDriver) -> None:
    first = twin.read()
    assert (first.time_s, twin.realtime, twin.name) == (0.0, False, "pendulum-ideal-0")
    assert twin.read() is first
    twin.write(go_to(PENDULUM, 0.0))
    second = twin.read()
    assert (second.time_s, second.sequence) == (0.005, first.sequence + 1)
    twin.write(go_to(PENDULUM, 0.0))
    twin.write(go_to(PENDULUM, 0.0))  # two commands without reading between them: both count
    assert twin.read().time_s == pytest.approx(0.015)


@medium
def test_what_was_sent_is_returned_and_reaches_the_motors(tmp_path: Path) -> None:
    with open_twin(f"twin:ideal?lockstep=1&tap={tmp_path / 'tap.bin'}") as driver:
        sent = [driver.write(go_to(PENDULUM, 0.01 * k)) for k in range(20)]
        driver.tick()
        driver.read()
    tap = read_tap(tmp_path / "tap.bin")
    assert tap.joint_names == ("joint",)
    assert np.array_equal(tap.commands[:20, 0, 0], [command.target_pos[0] for command in sent])
    assert np.isnan(tap.commands[20]).all()
    assert np.allclose(np.diff(tap.time), 0.005)
    assert np.abs(tap.torque).max() <= 8.0


@medium
def test_lock_step_runs_are_bit_identical_for_a_seed_and_differ_for_another() -> None:
    go2 = load_robot("go2")
    runs = []
    for seed in (7, 7, 8):
        with open_twin(f"twin:harmonic?lockstep=1&seed={seed}", go2) as driver:
            runs.append(wave(driver, go2, 100))
    assert runs[0].tobytes() == runs[1].tobytes()
    assert not np.allclose(runs[0][-1], runs[2][-1])


@medium
def test_lost_doubled_swapped_and_damaged_packets_change_nothing_in_lock_step() -> None:
    with open_twin("twin:mild?lockstep=1&seed=1") as clean:
        expected = wave(clean, PENDULUM, 60)
    bad = "twin:mild?lockstep=1&seed=1&drop=0.15&duplicate=0.2&reorder=0.1&corrupt=0.15"
    with open_twin(bad) as driver:
        seen = wave(driver, PENDULUM, 60)
        counts = driver.tap()
    assert seen.tobytes() == expected.tobytes()
    assert counts.bad_frames > 0
    assert counts.repeated > 0
    assert counts.accepted == counts.periods == 60


# --- the firmware ---
@medium
def test_the_watchdog_damps_after_its_timeout_and_lets_go_on_a_command(twin: TwinDriver) -> None:
    for _ in range(100):
        twin.write(go_to(PENDULUM, 1.0))
    held = twin.read()
    assert held.joint_torque[0] > 0.5
    for _ in range(19):  # with the last command's own period 100 ms
        twin.tick()
    at_timeout = twin.read()
    assert at_timeout.joint_torque[0] > 0.5
    assert twin.tap().watchdog == 0
    twin.tick()
    after = twin.read()
    assert twin.tap().watchdog == 1
    kd = PENDULUM.spec.kd[0]
    assert after.joint_torque[0] == pytest.approx(-kd * after.joint_vel[0], abs=0.02)  # only damping is left
    for _ in range(400):
        twin.tick()
    assert abs(twin.read().joint_pos[0]) < 0.1  # has sunk down
    for _ in range(200):
        twin.write(go_to(PENDULUM, 1.0))
    assert twin.read().joint_pos[0] == pytest.approx(held.joint_pos[0], abs=0.02)
    assert twin.tap().watchdog == 1


@medium
def test_impossible_commands_are_refused_counted_and_do_not_feed_the_watchdog(twin: TwinDriver) -> None:
    twin.write(go_to(PENDULUM, 0.5))
    good = go_to(PENDULUM, 0.5)
    for bad in (
        push(np.nan),
        push(np.inf),
        push(1e300),
        Command(target_pos=good.target_pos, target_vel=good.target_vel, kp=-good.kp, kd=good.kd, torque=good.torque),
    ):
        twin.write(bad)
        assert np.isfinite(twin.read().joint_torque).all()
    counts = twin.tap()
    assert (counts.commands, counts.accepted, counts.nonfinite, counts.negative_gain) == (5, 1, 3, 1)
    assert counts.watchdog == 0
    for _ in range(20):
        twin.write(push(np.nan))
    assert twin.tap().watchdog == 1


@medium
def test_targets_beyond_the_limits_are_counted_and_torque_is_clipped(twin: TwinDriver) -> None:
    twin.write(push(50.0))
    assert twin.read().joint_torque[0] == pytest.approx(8.0)
    twin.write(go_to(PENDULUM, 3.4))
    assert np.abs(twin.read().joint_torque).max() <= 8.0
    counts = twin.tap()
    assert (counts.accepted, counts.beyond_limits, counts.nonfinite) == (2, 2, 0)
    assert counts.torque_clipped >= 1


@medium
def test_frames_that_are_none_are_counted_and_survived(twin: TwinDriver) -> None:
    assert twin._socket is not None
    rng = np.random.default_rng(0)
    good = wire.encode_rows(1, 0.0, np.zeros((5, 1)))
    sent = 0
    for _ in range(200):
        data = bytearray(good)
        data[int(rng.integers(len(data)))] ^= int(rng.integers(1, 256))
        twin._socket.send(bytes(data))
        sent += 1
    twin._socket.send(wire.encode_rows(1, 0.0, np.zeros((5, 2))))
    deadline = time.monotonic() + 5.0
    while (counts := twin.tap()).malformed == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert counts.bad_frames == sent
    assert (counts.malformed, counts.accepted) == (1, 0)


# --- real time ---
@medium
def test_in_real_time_states_stream_and_the_clock_is_the_walls() -> None:
    with open_twin("twin:mild?hz=100&seed=2") as driver:
        assert driver.realtime
        first, wall = driver.read(), time.monotonic()
        states = [first]
        while time.monotonic() - wall < 0.5:
            driver.write(go_to(PENDULUM, 0.5))
            states.append(driver.read())
        passed = time.monotonic() - wall
        last = states[-1]
        assert last.time_s - first.time_s == pytest.approx(passed, abs=0.1)
        sequences = [state.sequence for state in states]
        assert np.all(np.diff(sequences) >= 1)
        assert last.joint_pos[0] > 0.3
        time.sleep(0.3)  # no commands: the watchdog damps
        assert driver.tap().watchdog == 1
        state, kd = driver.read(), PENDULUM.spec.kd[0]
        assert state.joint_torque[0] == pytest.approx(-kd * state.joint_vel[0], abs=0.12)  # noise of `mild`: 0.024


@medium
def test_a_running_twin_is_reached_by_address_and_serves_one_driver_at_a_time(tmp_path: Path) -> None:
    code = (
        "from trueup.hardware.twin_cfg import ServeCfg\n"
        "from trueup.robot.load import load_robot\n"
        "from trueup.twin.server import serve\n"
        "serve(ServeCfg(preset='ideal', lockstep=True), load_robot('pendulum'),"
        " on_ready=lambda server: print(server.address[1], flush=True))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            first = opened(f"twin@127.0.0.1:{port}")
            assert (first.realtime, first.name) == (False, "pendulum-ideal-0")
            with pytest.raises(TrueupError, match="another driver"):
                opened(f"twin@127.0.0.1:{port}")
            first.write(go_to(PENDULUM, 0.1))
            assert first.read().time_s == 0.005
            first.close()
            second = opened(f"twin@127.0.0.1:{port}")  # said goodbye: free again, and the robot is where it was
            assert second.read().time_s == pytest.approx(0.010)
            second.close()
            with pytest.raises(TrueupError, match="another robot"):
                opened(f"twin@127.0.0.1:{port}", load_robot("so101"))
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(5) == 0
    with pytest.raises(TrueupError, match="does not answer"):
        TwinDriver(PENDULUM, address=("127.0.0.1", port), timeout_s=0.3).connect()


# --- life and death ---
@medium
def test_closing_ends_the_twin_and_may_be_done_twice() -> None:
    driver = opened("twin:ideal?lockstep=1")
    pid = pid_of(driver)
    driver.close()
    assert gone_within(pid, 1.0)
    driver.close()
    with pytest.raises(TrueupError, match="connect"):
        driver.read()


@medium
def test_a_twin_that_cannot_start_says_why() -> None:
    with pytest.raises(TrueupError, match="did you mean 'harmonic'"):
        opened("twin:harmonik")
    with pytest.raises(TrueupError, match="base"):
        opened("twin:mild?base=swimming")
    with pytest.raises(TrueupError, match="command rate"):
        opened("twin:mild?hz=100000")


@medium
def test_a_twin_that_dies_is_noticed() -> None:
    driver = opened("twin:ideal?lockstep=1")
    os.kill(pid_of(driver), signal.SIGKILL)
    with pytest.raises(TrueupError, match="does not answer"):
        wave(driver, PENDULUM, 3)
    driver.close()


CHILD = """
import sys, time
from trueup.hardware.drivers.open import open_driver
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
driver = open_driver(sys.argv[1], load_robot("pendulum"))
driver.connect()
print(driver._process._child.pid, flush=True)
time.sleep(60)
"""


@medium
@pytest.mark.parametrize("reference", ["twin:ideal?lockstep=1", "twin:ideal"])
def test_a_twin_does_not_outlive_a_parent_that_is_killed(reference: str) -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD, reference], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
    assert gone_within(pid, 3.0)


@medium
def test_ctrl_c_of_the_terminal_does_not_reach_the_twin() -> None:
    driver = opened("twin:ideal?lockstep=1")
    assert os.getpgid(pid_of(driver)) != os.getpgid(0)
    os.kill(pid_of(driver), signal.SIGTERM)
    assert gone_within(pid_of(driver), 3.0)
    driver.close()


@medium
def test_a_stranger_cannot_command_the_twin(twin: TwinDriver) -> None:
    assert twin._address is not None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.settimeout(2.0)
        stranger.sendto(wire.encode_rows(1000, 0.0, np.full((5, 1), 5.0)), twin._address)
        answer = wire.decode(stranger.recv(wire.MAX_FRAME_BYTES))
        assert answer.kind is Kind.REFUSAL
    assert twin.tap().commands == 0


@pytest.fixture
def one_core() -> Iterator[None]:
    """Twin and driver on one core: no core has to wake the other, whose cost would be measured too."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def cpu_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9


@medium
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs Linux's CPU accounting")
@pytest.mark.parametrize("preset", ["pace", "harmonic"])
def test_a_twin_costs_little_more_than_the_bare_engine(preset: str, one_core: None) -> None:
    """Time of a core spent by the twin's process against plain steps of a model with the same joints, in the same run.

    `benchmarks/twin.py` gives the speed against real time; here other work on the machine must not decide.
    """
    go2 = load_robot("go2")
    goals = [go_to(go2, go2.spec.default_pose + 0.2 * np.sin(0.05 * k)) for k in range(20)]
    bare = BatchSim(go2, SimCfg(model=ModelCfg(base="fixed"), control_hz=200.0, physics_hz=1000.0))
    model, data = bare.batch.get_model(0), bare.batch.get_data(0)
    ratios = []
    with open_twin(f"twin:{preset}?lockstep=1&seed=7", go2) as driver:
        pid = pid_of(driver)
        for _ in range(30):
            before = cpu_seconds(pid)
            for goal in goals:  # 0.1 s of robot time
                driver.write(goal)
                driver.read()
            twin = cpu_seconds(pid) - before
            before = time.process_time()
            mujoco.mj_step(model, data, 100)
            ratios.append(twin / (time.process_time() - before))
    assert np.median(ratios) < {"pace": 6.0, "harmonic": 10.0}[preset]
