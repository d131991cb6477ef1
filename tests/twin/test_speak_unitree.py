"""A twin that speaks as a Unitree robot: its motors by the vendor's numbers, sport mode, checksums, watchdog."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cyclonedds")
from foreign_robots import locate
from unitree_bench import G1, GO2, driving, hold, own_domain, serving, stranger, wait_until

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.dds import DdsBus
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.drivers.unitree.codec import encode_command
from trueup.hardware.drivers.unitree.crc import is_sound, stamp
from trueup.hardware.drivers.unitree.layout import Record
from trueup.hardware.drivers.unitree.motors import wiring_of
from trueup.hardware.drivers.unitree.rpc import Client
from trueup.hardware.drivers.unitree.streams import LOW_STATE
from trueup.hardware.twin_cfg import FaultCfg, ServeCfg
from trueup.robot.drafts.init import init_robot
from trueup.robot.load import Robot, load_robot
from trueup.twin.firmware import Twin
from trueup.twin.speak.unitree import MODE_MACHINE, UnitreeSpeaker
from trueup.twin.tap import read_tap
from trueup.twin.truth.seal import reveal

medium = pytest.mark.medium
# by hand from the vendor's tables: number of the motor -> joint
LEGS = [f"{leg}_{part}_joint" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")]
LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
HUMAN = [f"left_{part}" for part in LEG] + [f"right_{part}" for part in LEG]
HUMAN += ["waist_yaw", "waist_roll", "waist_pitch"]
HUMAN += [f"left_{part}" for part in ARM] + [f"right_{part}" for part in ARM]


@pytest.fixture(scope="module")
def go2() -> Iterator[UnitreeSpeaker]:
    """A released go2."""
    with serving(GO2) as speaker:
        with driving(speaker):
            pass
        yield speaker


def command_of(robot: Robot, *, mode_machine: int = MODE_MACHINE) -> Record:
    spec, zero = robot.spec, np.zeros(robot.spec.njoint)
    rows = np.stack([spec.default_pose, zero, spec.kp, spec.kd, zero])
    return stamp(encode_command(wiring_of(spec), rows, mode_machine))


def cdr_of(robot: Robot, record: Record) -> bytes:
    return wiring_of(robot.spec).family.low_cmd.to_cdr(record)


class Eavesdropper:
    """Reads rt/lowstate beside the driver, as it is on the network."""

    def __init__(self, speaker: UnitreeSpeaker) -> None:
        place, _, domain = speaker.reference.removeprefix("unitree:").partition("?domain=")
        self.bus = DdsBus(place, int(domain), "unitree")
        self._type = wiring_of(speaker.twin.robot.spec).family.low_state
        self.states = self.bus.inbox(LOW_STATE, self._type.sample)

    def newest(self) -> Record:
        self.states.take()
        assert self.states.wait(2.0)
        return self._type.from_cdr(self.states.take()[-1].cdr)


def assert_each_joint_moves_alone(speaker: UnitreeSpeaker, motor_names: list[str]) -> None:
    """Move one joint after another through the driver; that joint moves in the twin, and the vendor's number of it."""
    robot = speaker.twin.robot
    spec, network = robot.spec, Eavesdropper(speaker)
    middle = (spec.position_low + spec.position_high) / 2
    with driving(speaker) as driver:

        def settled(pose: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            state = driver.read()
            start = state.time_s
            while state.time_s < start + 0.2 or (np.abs(state.joint_vel).max() > 0.15 and state.time_s < start + 2.0):
                driver.write(replace(hold(robot, pose), kp=4 * spec.kp, kd=8 * spec.kd))  # a waist settles slowly
                state = driver.read()
            raw = network.newest()["motor_state"]["q"][0]
            return driver.read().joint_pos, speaker.twin.plant.position.copy(), raw.astype(float)

        reported, inside, raw = settled(spec.default_pose)
        for joint, name in enumerate(spec.joint_names):
            step = np.zeros(spec.njoint)
            step[joint] = 0.25 if spec.default_pose[joint] < middle[joint] else -0.25
            for before, after in zip((reported, inside), settled(spec.default_pose + step)[:2], strict=True):
                moved = after - before
                assert np.argmax(np.abs(moved)) == joint, name
                assert moved[joint] * np.sign(step[joint]) > 0.12, name
            moved = network.newest()["motor_state"]["q"][0] - raw
            assert np.argmax(np.abs(moved)) == motor_names.index(name), name
            assert np.sign(moved[motor_names.index(name)]) == np.sign(step[joint]), name
        assert speaker.twin.tap().beyond_limits == 0
    network.bus.close()


# --- joints ---
@medium
def test_each_joint_of_go2_moves_by_name_number_and_sign() -> None:
    with serving(GO2) as speaker:
        assert_each_joint_moves_alone(speaker, LEGS)


@medium
def test_each_joint_of_g1_moves_by_name_number_and_sign() -> None:
    with serving(G1) as speaker:
        assert_each_joint_moves_alone(speaker, [f"{name}_joint" for name in HUMAN])


@medium
def test_each_joint_of_b2_drafted_from_its_model_moves_by_name_number_and_sign(tmp_path: Path) -> None:
    init_robot(locate("b2")[0], tmp_path / "b2")
    with serving(load_robot(tmp_path / "b2")) as speaker:
        assert_each_joint_moves_alone(speaker, LEGS)


# --- states ---
@medium
def test_states_come_every_period_with_a_sound_checksum(go2: UnitreeSpeaker) -> None:
    network = Eavesdropper(go2)
    ticks: list[int] = []
    while len(ticks) < 100:
        assert network.states.wait(1.0)
        for sample in network.states.take():
            record = wiring_of(GO2.spec).family.low_state.from_cdr(sample.cdr)
            assert is_sound(record)
            ticks.append(int(record["tick"][0]))
    assert (np.diff(ticks) == 4).all()  # 250 Hz, and none lost
    network.bus.close()


@medium
def test_a_humanoid_reports_its_battery_on_a_topic_of_its_own() -> None:
    with serving(G1) as speaker, driving(speaker) as driver:
        assert driver.released == "ai"
        wait_until(lambda: driver.read().voltage == pytest.approx(24.0))
        assert driver.mode_machine == MODE_MACHINE


# --- commands ---
@medium
def test_sport_mode_obeys_nobody_else() -> None:
    with serving(GO2) as speaker, driving(speaker, release="0") as driver:
        for _ in range(50):
            driver.write(hold(GO2, GO2.spec.default_pose + 0.3))
            state = driver.read()
        assert speaker.ignored >= 45
        assert speaker.twin.tap().commands == 0
        np.testing.assert_allclose(state.joint_pos, GO2.spec.default_pose, atol=0.12)
        assert driver.other_commander is not None  # sport mode itself


@medium
def test_commands_with_a_wrong_checksum_are_counted_and_not_obeyed(go2: UnitreeSpeaker) -> None:
    before = go2.twin.tap()
    with stranger(go2) as other:
        wrong, changed = command_of(GO2), command_of(GO2)
        wrong["crc"] ^= 1
        changed["motor_cmd"]["q"][0, 3] += 0.1
        for record in (wrong, changed):
            other.send(cdr_of(GO2, record))
        wait_until(lambda: go2.twin.tap().bad_frames - before.bad_frames == 2)
        assert go2.twin.tap().commands == before.commands
        other.send(cdr_of(GO2, command_of(GO2)))
        wait_until(lambda: go2.twin.tap().accepted - before.accepted == 1)


@medium
def test_a_nan_with_a_right_checksum_is_refused_at_the_motors(go2: UnitreeSpeaker) -> None:
    before = go2.twin.tap()
    with stranger(go2) as other:
        record = command_of(GO2)
        record["motor_cmd"]["tau"][0, 5] = np.nan
        other.send(cdr_of(GO2, stamp(record)))
        wait_until(lambda: go2.twin.tap().nonfinite - before.nonfinite == 1)
        assert go2.twin.tap().accepted == before.accepted


@medium
def test_silence_after_commands_ends_in_damping(go2: UnitreeSpeaker) -> None:
    before = go2.twin.tap().watchdog
    with stranger(go2) as other:
        other.send(cdr_of(GO2, command_of(GO2)))
        wait_until(lambda: go2.twin.tap().watchdog == before + 1)
        time.sleep(0.1)
        assert go2.twin.tap().watchdog == before + 1


@medium
def test_a_humanoid_takes_only_commands_for_its_own_build() -> None:
    with serving(G1) as speaker, driving(speaker), stranger(speaker) as other:
        before = speaker.twin.tap()
        other.send(cdr_of(G1, command_of(G1, mode_machine=4)))
        wait_until(lambda: speaker.twin.tap().malformed == 1)
        assert speaker.twin.tap().accepted == before.accepted


@medium
def test_sport_mode_can_be_selected_again() -> None:
    with serving(GO2) as speaker, driving(speaker):
        place, _, domain = speaker.reference.removeprefix("unitree:").partition("?domain=")
        bus = DdsBus(place, int(domain), "unitree")
        client = Client(bus, "motion_switcher")
        assert client.call(1001, timeout_s=2.0).data == '{"form":"0","name":""}'
        assert client.call(1002, '{"name":"normal"}', timeout_s=2.0).code == 0
        assert client.call(1001, timeout_s=2.0).data == '{"form":"0","name":"normal"}'
        assert client.call(4711, timeout_s=2.0).code == 3203
        bus.close()


# --- bad networks, files, processes ---
@medium
def test_damaged_and_lost_frames_harm_nobody(tmp_path: Path) -> None:
    faults = FaultCfg(drop=0.1, duplicate=0.1, corrupt=0.2)
    with serving(GO2, faults=faults, tap=str(tmp_path / "tap")) as speaker, driving(speaker) as driver:
        for _ in range(200):
            driver.write(hold(GO2))
            state = driver.read()
        np.testing.assert_allclose(state.joint_pos, GO2.spec.default_pose, atol=0.12)
        tap = speaker.twin.tap()
        assert tap.bad_frames > 10
        assert driver.bad_states > 10
        assert tap.accepted == tap.commands > 100
        assert tap.beyond_limits == tap.nonfinite == tap.negative_gain == 0
    rows = read_tap(tmp_path / "tap").commands
    got = rows[np.isfinite(rows[:, 0, 0]) & (rows[:, 2, 0] > 0.0)]
    assert len(got) > 50
    np.testing.assert_allclose(got[:, 0], np.tile(GO2.spec.default_pose, (len(got), 1)), atol=1e-6)


def test_what_dds_cannot_do_is_refused() -> None:
    for options, words in (({"lockstep": True}, "real time"), ({"place": "lo?port=3"}, r"INTERFACE\?domain=N")):
        cfg = ServeCfg(**{"preset": "ideal", "speak": "unitree", "place": "lo"} | options)
        with pytest.raises(TrueupError, match=words):
            UnitreeSpeaker(Twin(GO2, cfg), cfg)


@medium
def test_a_twin_in_a_process_of_its_own_is_served_sealed_and_ended() -> None:
    with own_domain() as domain:
        command = [sys.executable, "-m", "trueup", "twin", "serve", "go2", "--preset", "mild", "--seed", "11"]
        command += ["--speak", "unitree", "--place", f"lo?domain={domain}", "--command-hz", "500"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout is not None
            said = re.search(r"twin (\S+) listens: --driver (\S+)", child.stdout.readline())
            assert said is not None
            assert said[2] == f"unitree:lo?domain={domain}"
            driver = open_driver(said[2] + "&stand_down=0", GO2, command_hz=500.0)
            driver.connect()
            for _ in range(100):
                driver.write(hold(GO2))
                state = driver.read()
            driver.close()
            assert state.joint_pos.shape == (12,)
            assert reveal(said[1])  # the truth was sealed under this name
            child.send_signal(signal.SIGTERM)
            assert child.wait(10.0) == 0
        finally:
            child.kill()
            child.wait()
