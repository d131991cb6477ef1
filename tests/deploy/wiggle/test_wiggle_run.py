"""The wiggle test on twins with planted mistakes: what it finds, and what it does to the robot meanwhile."""

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from miswired import Miswired, Miswiring
from rich.console import Console

from trueup.core.errors import TrueupError
from trueup.deploy.wiggle.analysis.finding import WiggleResult
from trueup.deploy.wiggle.analysis.limb_model import read_limbs
from trueup.deploy.wiggle.cfg import WiggleCfg
from trueup.deploy.wiggle.motion.program import sweep_groups, sweep_poses
from trueup.deploy.wiggle.verbs import WiggleVerb
from trueup.deploy.wiggle.wiggle import run_wiggle
from trueup.hardware.driver import Command
from trueup.hardware.drivers.twin import TwinDriver
from trueup.hardware.guard.trip import GuardTripped, Trip
from trueup.hardware.twin_cfg import ServeCfg
from trueup.report.operate.wiggle import print_wiggle
from trueup.report.operate.wiggle import run_wiggle as run_verb
from trueup.robot.load import load_robot

GO2 = load_robot("go2")
RIGHT = Miswiring.right(12)
SHORT = WiggleCfg(stops=False)


class Watched(TwinDriver):
    """A twin's driver that keeps what was sent and what came back."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.sent, self.states, self.ended = [], [], ""

    def read(self):
        state = super().read()
        self.states.append(state)
        return state

    def write(self, command):
        self.sent.append(command)
        return super().write(command)

    def close(self):
        self.ended = self.ended or ("damped" if not self.sent[-1].kp.any() else "stiff") if self.sent else "untouched"
        super().close()


def twin(preset: str = "ideal", seed: int = 0, robot=GO2) -> Watched:
    return Watched(robot, ServeCfg(preset=preset, seed=seed, lockstep=True, command_hz=100.0))


def wiggled(wiring: Miswiring, cfg: WiggleCfg = SHORT, preset: str = "mild") -> WiggleResult:
    return run_wiggle(GO2, Miswired(twin(preset), wiring), cfg)


def found(result: WiggleResult) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (finding.kind, tuple(name.removesuffix("_joint") for name in finding.joints)) for finding in result.findings
    ]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("wiring", "expected"),
    [
        (RIGHT, []),
        (replace(RIGHT.swap(1, 4), writes=False), [("swap", ("FL_thigh", "FR_thigh"))]),
        (replace(RIGHT.swap(0, 5), reads=False), [("swap", ("FL_hip", "FR_calf"))]),
        (replace(RIGHT.flip(1), writes=False), [("sign", ("FL_thigh",))]),
        (replace(RIGHT.flip(2), reads=False), [("sign", ("FL_calf",))]),
        (replace(RIGHT, dead=(9,)), [("dead", ("RR_hip",))]),
        (RIGHT.swap(0, 2), [("swap", ("FL_hip", "FL_calf"))]),
    ],
)
def test_mistakes_between_commands_and_readings_are_named(wiring, expected):
    assert found(wiggled(wiring)) == expected


@pytest.mark.medium
@pytest.mark.parametrize(
    ("wiring", "expected"),
    [
        (RIGHT, []),
        (RIGHT.swap(2, 11), [("swap", ("FL_calf", "RR_calf"))]),
        (RIGHT.swap(1, 7), [("swap", ("FL_thigh", "RL_thigh"))]),
        (RIGHT.flip(3), [("sign", ("FR_hip",))]),
        (RIGHT.shift(8, -0.2), [("offset", ("RL_calf",))]),
    ],
)
def test_mistakes_that_no_encoder_shows_are_named_by_stops_and_gravity(wiring, expected):
    result = wiggled(wiring, WiggleCfg(), preset="worn")
    assert found(result) == expected
    assert result.seconds < 62.0
    if expected and expected[0][0] == "offset":
        assert result.findings[0].value == pytest.approx(-0.2, abs=0.06)  # and the twin's own bias, up to 0.05


@pytest.mark.medium
def test_commands_stay_within_limits_and_the_robot_ends_damped():
    driver = twin("mild", 3)
    result = run_wiggle(GO2, driver, WiggleCfg())
    assert result.passed
    assert driver.ended == "damped"
    spec = GO2.spec
    targets = np.array([command.target_pos for command in driver.sent if command.kp.any()])
    assert (targets >= spec.position_low - 1e-9).all()
    assert (targets <= spec.position_high + 1e-9).all()
    asked = [servo_torque(command, state) for command, state in zip(driver.sent, driver.states, strict=False)]
    assert np.max(np.abs(asked) / spec.torque_limit) <= 0.8 + 0.05  # the servo's damping comes on top
    speed = np.array([state.joint_vel for state in driver.states])
    assert np.abs(speed).max() < 6.0


def servo_torque(command: Command, state) -> np.ndarray:
    return command.kp * (command.target_pos - state.joint_pos) + command.torque


def test_nothing_moves_when_a_joint_reads_what_it_cannot():
    driver = twin()
    result = run_wiggle(GO2, Miswired(driver, RIGHT.flip(2)), SHORT)
    assert found(result)[0][1] == ("FL_calf",)
    assert result.notes == ("nothing was moved",)
    assert not [command for command in driver.sent if command.kp.any()]


def test_a_driver_that_fails_midway_is_damped_and_closed():
    class Failing(Watched):
        def read(self):
            if len(self.states) == 150:
                raise TrueupError("the cable is loose")
            return super().read()

    driver = Failing(GO2, ServeCfg(preset="ideal", lockstep=True, command_hz=100.0))
    with pytest.raises(TrueupError, match="cable"):
        run_wiggle(GO2, driver, SHORT)
    assert driver.ended == "damped"


def test_a_hot_motor_ends_the_test():
    class Hot(Watched):
        def read(self):
            state = super().read()
            return replace(state, joint_temperature=np.where(np.arange(12) == 4, 30.0 + 0.5 * len(self.states), 30.0))

    result = run_wiggle(GO2, Hot(GO2, ServeCfg(preset="ideal", lockstep=True, command_hz=100.0)), SHORT)
    assert [finding.kind for finding in result.findings] == ["aborted"]
    assert "FR_thigh_joint" in result.findings[0].text


def test_a_trip_of_the_motor_guard_ends_the_test_and_is_told():
    class Guarded(Watched):
        def write(self, command):
            if len(self.sent) == 100:
                raise GuardTripped(Trip(guard="tilt", reason="it leans by 1.2 rad", time_s=1.0))
            return super().write(command)

        def damp(self):
            return TwinDriver.damp(self) if len(self.sent) != 100 else None

    result = run_wiggle(GO2, Guarded(GO2, ServeCfg(preset="ideal", lockstep=True, command_hz=100.0)), SHORT)
    assert [finding.kind for finding in result.findings] == ["aborted"]
    assert "it leans by 1.2 rad" in result.findings[0].text
    assert result.unseen == ()  # of half a test
    assert (result.nwrong, result.is_aborted) == (0, True)
    console = Console(file=io.StringIO(), width=100)
    print_wiggle(result, console)
    assert "given up, 0 wrong so far: run it again" in console.file.getvalue()


def test_another_robots_driver_is_refused():
    with pytest.raises(TrueupError, match="not those of so101"):
        run_wiggle(load_robot("so101"), twin(), SHORT)


def test_limbs_take_different_poses_and_hips_stay():
    limbs = read_limbs(GO2)
    poses = np.array(sweep_poses(GO2.spec, limbs)) - GO2.spec.default_pose
    assert len(poses) == 3
    assert not poses[:, [0, 3, 6, 9]].any()
    for a in range(4):
        for b in range(a):
            assert ((poses[:, 3 * a + 1] != 0) != (poses[:, 3 * b + 1] != 0)).sum() == 2
    assert len(sweep_poses(load_robot("so101").spec, read_limbs(load_robot("so101")))) == 2


def test_diagonal_legs_are_swept_together_and_an_arm_joint_by_joint():
    limbs = read_limbs(GO2)
    assert sweep_groups(GO2.spec, limbs, full=True)[:3] == [[0, 9], [1, 10], [2, 11]]
    assert sweep_groups(GO2.spec, limbs, full=False) == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    assert sweep_groups(GO2.spec, None, full=True) == [[j] for j in range(12)]
    arm = load_robot("so101")
    assert sweep_groups(arm.spec, read_limbs(arm), full=True) == [[j] for j in range(6)]


def test_wiring_there_and_back_is_the_robot_itself():
    wiring = RIGHT.swap(0, 5).flip(5).shift(0, 0.25)
    driver = Miswired(twin(), wiring)
    driver.connect()
    state = driver.read()
    zero = np.zeros(12)
    sent = driver._wired(
        Command(target_pos=state.joint_pos, target_vel=zero, kp=np.arange(12.0), kd=zero + 1, torque=zero)
    )
    driver.close()
    np.testing.assert_allclose(sent.target_pos, GO2.spec.default_pose, atol=1e-6)
    assert (sent.kp[5], sent.kp[0]) == (0.0, 5.0)


def test_the_verb_prints_findings_writes_json_and_ends_with_one(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    verb = WiggleVerb(robot="pendulum", driver="twin:ideal?seed=1", lockstep=True, stops=False, out=tmp_path / "w.json")
    assert run_verb(verb) == 0
    assert "nothing wrong found" in capsys.readouterr().out
    assert '"robot": "pendulum"' in (tmp_path / "w.json").read_text()


def test_what_is_wrong_unseen_and_left_out_is_printed():
    import io

    from rich.console import Console

    from trueup.deploy.wiggle.analysis.finding import JointResult, WiringFinding

    console = Console(file=io.StringIO(), width=200)
    result = WiggleResult(
        robot="x",
        driver="y",
        findings=(WiringFinding(kind="offset", joints=("a",), text="a is held [early]", value=0.2),),
        joints=(JointResult(name="a", gain=0.5, offset=0.2, low=-1.0),),
        unseen=("the sign of a",),
        notes=("torques were not compared",),
        seconds=12.0,
    )
    print_wiggle(result, console)
    text = console.file.getvalue()
    for part in (
        "a is held [early]",
        "the sign of a: look at it",
        "torques were not compared",
        "+0.200",
        "50%",
        "1 wrong",
    ):
        assert part in text


@pytest.mark.parametrize(
    "wrong", [{"speed": 0.0}, {"torque_fraction": 1.5}, {"rate_hz": 5.0}, {"offset_rad": float("nan")}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(TrueupError):
        WiggleCfg(**wrong)


def test_the_wiggle_test_needs_no_engine():
    code = (
        "import sys, trueup.deploy.wiggle.verbs; "
        "print([m for m in ('mujoco', 'torch', 'scipy', 'viser', 'h5py') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
