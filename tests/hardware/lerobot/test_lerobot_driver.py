from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from lerobot_arm import Arm

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command
from trueup.hardware.drivers.lerobot import LerobotDriver
from trueup.hardware.drivers.open import open_driver
from trueup.robot.load import Robot, load_robot

DEG = math.pi / 180.0


@pytest.fixture(scope="module")
def so101() -> Robot:
    return load_robot("so101")


@pytest.fixture
def opened(so101: Robot) -> Iterator[LerobotDriver]:
    driver = connected(so101)
    yield driver
    driver.close()


def make(robot: Robot, options: str = "", name: str = "Arm") -> LerobotDriver:
    driver = open_driver(f"lerobot:lerobot_arm:{name}?port=/dev/null{options}", robot, command_hz=500.0)
    assert isinstance(driver, LerobotDriver)
    return driver


def connected(robot: Robot, options: str = "", name: str = "Arm") -> LerobotDriver:
    driver = make(robot, options, name)
    driver.connect()
    return driver


def ask(robot: Robot, **changes: object) -> Command:
    zero = np.zeros(6)
    given = {"target_pos": zero, "target_vel": zero, "kp": robot.spec.kp, "kd": robot.spec.kd, "torque": zero}
    return Command(**(given | changes))  # type: ignore[arg-type]


def gripper(robot: Robot, percent: float) -> float:
    """0..100 of the half turn that the arm's calibration says, from the closed end."""
    return float(robot.spec.position_low[5]) + percent / 100.0 * math.pi


def test_degrees_and_the_gripper_become_radians(opened: LerobotDriver, so101: Robot) -> None:
    state = opened.read()
    np.testing.assert_allclose(state.joint_pos[:5], DEG * np.array([10, 20, 30, 40, 50]))
    assert state.joint_pos[5] == pytest.approx(gripper(so101, 60.0))
    assert Arm.last.config.use_degrees
    assert np.isnan(state.joint_torque).all()
    assert state.imu_quat is None


def test_normalised_values_are_scaled_by_the_calibration_of_the_arm(so101: Robot) -> None:
    """1024..3072 ticks of 4096 is half a turn: 100 is 90 degrees."""
    with make(so101, "&units=normalised") as driver:
        assert not Arm.last.config.use_degrees
        np.testing.assert_allclose(driver.read().joint_pos[:5], math.pi / 2 * np.array([0.1, 0.2, 0.3, 0.4, 0.5]))


def test_calibration_file_of_the_user_is_taken_before_that_of_the_arm(so101: Robot, tmp_path: Path) -> None:
    """2048..3072 ticks is a quarter of a turn: 100 is 45 degrees."""
    one = '{"id": 1, "drive_mode": 0, "homing_offset": 0, "range_min": 2048, "range_max": 3072}'
    file = tmp_path / "arm.json"
    file.write_text("{" + ", ".join(f'"{joint}": {one}' for joint in so101.spec.joint_names) + "}")
    with make(so101, f"&units=normalised&calibration={file}") as driver:
        np.testing.assert_allclose(driver.read().joint_pos[:5], math.pi / 4 * np.array([0.1, 0.2, 0.3, 0.4, 0.5]))


def test_states_are_counted_and_velocity_is_rise_over_run(opened: LerobotDriver) -> None:
    first = opened.read()
    Arm.last.position["shoulder_pan"] += 1.0
    second = opened.read()
    assert second.sequence == first.sequence + 1
    assert second.joint_vel[0] == pytest.approx(DEG / (second.time_s - first.time_s))
    assert not second.joint_vel[1:].any()


def test_velocities_of_the_class_are_used(so101: Robot) -> None:
    with make(so101, name="SpeedArm") as driver:
        np.testing.assert_allclose(driver.read().joint_vel[:5], math.pi / 2)


def test_read_keeps_to_the_rate(so101: Robot) -> None:
    with make(so101) as driver:
        start = time.monotonic()
        for _ in range(20):
            driver.read()
        assert time.monotonic() - start >= 19 / 500


def test_command_is_sent_in_units_of_the_class(opened: LerobotDriver, so101: Robot) -> None:
    target = np.array([0.1, -0.2, 0.3, 0.0, 0.0, gripper(so101, 25.0)])
    sent = opened.write(ask(so101, target_pos=target, kp=np.full(6, 99.0), torque=np.ones(6)))
    action = Arm.last.actions[-1]
    assert list(action) == [f"{joint}.pos" for joint in so101.spec.joint_names]
    np.testing.assert_allclose(list(action.values()), [*(target[:5] / DEG), 25.0], atol=1e-12)
    np.testing.assert_allclose(sent.target_pos, target)
    assert sent.kp.tolist() == so101.spec.kp.tolist()  # the class sets the gains
    assert not sent.torque.any()
    assert not opened.sends_gains


def test_what_the_class_clips_is_what_was_sent(so101: Robot) -> None:
    with make(so101, "&max_relative_target=5") as driver:
        sent = driver.write(ask(so101, target_pos=np.full(6, 1.0)))
        np.testing.assert_allclose(sent.target_pos[:5], DEG * np.array([15, 25, 35, 45, 55]))


def test_joint_without_stiffness_is_sent_where_it_is(opened: LerobotDriver, so101: Robot) -> None:
    opened.write(ask(so101, kp=np.zeros(6)))
    assert list(Arm.last.actions[-1].values()) == pytest.approx([10, 20, 30, 40, 50, 60])


def test_damp_holds_the_pose_of_its_first_call(opened: LerobotDriver) -> None:
    opened.damp()
    Arm.last.position["shoulder_pan"] = 0.0
    opened.read()
    opened.damp()
    assert [action["shoulder_pan.pos"] for action in Arm.last.actions] == pytest.approx([10.0, 10.0])
    assert Arm.last.bus.torque


def test_limp_damp_switches_torque_off_and_a_command_on(so101: Robot) -> None:
    with make(so101, "&damp=limp") as driver:
        sent = driver.damp()
        assert not Arm.last.bus.torque
        assert not Arm.last.actions
        assert not sent.kp.any()
        driver.write(ask(so101))
        assert Arm.last.bus.torque


def test_close_holds_then_disconnects_once(so101: Robot) -> None:
    driver = connected(so101)
    driver.write(ask(so101))
    driver.close()
    driver.close()
    assert Arm.last.calls == ["connect", "disconnect"]
    assert [action["shoulder_pan.pos"] for action in Arm.last.actions] == pytest.approx([0.0, 10.0])
    with pytest.raises(TrueupError, match="not connected"):
        driver.read()
    with pytest.raises(TrueupError, match="not connected"):
        driver.write(ask(so101))


def test_driver_that_only_reads_sends_nothing(so101: Robot) -> None:
    with make(so101) as driver:
        driver.read()
    assert not Arm.last.actions


@pytest.mark.parametrize("field", ["target_pos", "target_vel", "kp", "kd", "torque"])
def test_what_is_not_finite_is_refused_by_joint(opened: LerobotDriver, so101: Robot, field: str) -> None:
    bad = np.array([0.0, 0.0, np.inf, 0.0, 0.0, 0.0])
    with pytest.raises(TrueupError, match=f"{field} of joint 'elbow_flex' is not finite"):
        opened.write(ask(so101, **{field: bad}))
    assert not Arm.last.actions


def test_arm_without_calibration_is_refused_and_let_go(so101: Robot) -> None:
    driver = make(so101)
    Arm.last.fault.calibrated = False
    with pytest.raises(TrueupError, match="is not calibrated"):
        driver.connect()
    assert Arm.last.calls == ["connect", "disconnect"]


def test_failure_of_the_class_is_a_trueup_error(opened: LerobotDriver) -> None:
    Arm.last.fault.reading = ConnectionError("Failed to sync read 'Present_Position'")
    with pytest.raises(TrueupError, match="LeRobot's Arm fails in get_observation: ConnectionError: Failed to sync"):
        opened.read()


def test_joint_that_is_not_reported_is_named(opened: LerobotDriver) -> None:
    Arm.last.fault.absent = "wrist_flex"
    with pytest.raises(TrueupError, match=r"reports no number 'wrist_flex\.pos'"):
        opened.read()


def test_class_without_a_joint_of_ours_is_refused_before_it_connects(so101: Robot) -> None:
    driver = make(so101, name="ShortArm")
    with pytest.raises(TrueupError, match="has no wrist_roll, gripper in its action_features"):
        driver.connect()
    assert Arm.last.calls == []


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("lerobot_arm:Arm", "cannot be made: TypeError: .*port"),
        ("lerobot_arm:Arm?port=x&units=inches", "say the units"),
        ("lerobot_arm:Arm?port=x&units=radians", "say the units"),
        ("lerobot_arm:Arm?port=x&max_relative_target=far", "cannot be made: ValueError"),
        ("lerobot_arm:Arm?port=x&damp=soft", "no damp 'soft'"),
        ("lerobot_arm:PlainArm?port=x", "its class does not say"),
        ("lerobot_arm:PlainArm?port=x&id=y", "has no option 'id'"),
        ("lerobot_arm:NoRobot", "say the units"),
        ("lerobot_arm:NoRobot?units=degrees", "is no robot of LeRobot: it has no connect"),
        ("lerobot_arm:Bus?units=degrees", "has no config_class"),
        ("lerobot_arm:Nothing", "no function 'Nothing'"),
    ],
)
def test_wrong_reference_is_refused(reference: str, message: str, so101: Robot) -> None:
    with pytest.raises(TrueupError, match=message):
        open_driver(f"lerobot:{reference}", so101)


def test_reading_and_writing_from_two_threads_never_overlap(so101: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the motor guard does: a thread reads while another writes; LeRobot's bus has no lock."""
    inside, overlaps = [0], [0]

    def slow(function: object) -> object:
        def wrapped(*args: object) -> object:
            inside[0] += 1
            overlaps[0] += inside[0] > 1
            time.sleep(0.001)
            try:
                return function(*args)  # type: ignore[operator]
            finally:
                inside[0] -= 1

        return wrapped

    for name in ("get_observation", "send_action"):
        monkeypatch.setattr(Arm, name, slow(getattr(Arm, name)))
    with make(so101) as driver:
        thread = threading.Thread(target=lambda: [driver.read() for _ in range(30)])
        thread.start()
        for _ in range(30):
            driver.write(ask(so101))
        thread.join(10.0)
    assert overlaps == [0]


@pytest.fixture
def fake_lerobot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package `lerobot` whose robot types register themselves when their folder is imported, as theirs do."""
    robots = tmp_path / "lerobot" / "robots"
    for folder, text in {
        robots.parent: "",
        robots: (
            "class RobotConfig:\n    _known = {}\n"
            "    @classmethod\n    def get_known_choices(cls):\n        return dict(cls._known)\n"
            "def make_robot_from_config(config):\n    from lerobot_arm import Arm\n    return Arm(config)\n"
        ),
        robots / "so_follower": (
            "from lerobot.robots import RobotConfig\nfrom lerobot_arm import ArmConfig\n"
            "RobotConfig._known['so101_follower'] = ArmConfig\n"
        ),
        robots / "reachy2": "raise ImportError('no reachy2_sdk')\n",
    }.items():
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "lerobot"]:
        del sys.modules[name]


@pytest.mark.usefixtures("fake_lerobot")
def test_robot_type_of_an_installed_lerobot_is_found_by_name(so101: Robot) -> None:
    driver = open_driver("lerobot:so101_follower?port=/dev/ttyACM0&id=my_arm", so101)
    assert (Arm.last.config.port, Arm.last.config.id) == ("/dev/ttyACM0", "my_arm")
    driver.connect()
    driver.close()


@pytest.mark.usefixtures("fake_lerobot")
def test_unknown_robot_type_is_refused_with_those_that_are_known(so101: Robot) -> None:
    with pytest.raises(TrueupError, match=r"no robot 'so102_follower' \(did you mean 'so101_follower'\?\).*reachy2"):
        open_driver("lerobot:so102_follower", so101)


def test_lerobot_that_is_not_installed_is_said(so101: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lerobot", None)
    with pytest.raises(TrueupError, match="LeRobot cannot be imported here"):
        open_driver("lerobot:so101_follower?port=x", so101)
