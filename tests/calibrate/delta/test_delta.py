"""A delta action learned from logs of a robot whose gains differ from the simulator's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from weak_robot import SHARE, recorded

from trueup.calibrate.delta.beside import uan
from trueup.calibrate.delta.beside.baselines import METHODS, ScoredMethod, recommended, score_all
from trueup.calibrate.delta.config import DeltaCfg
from trueup.calibrate.delta.delta import calibrate_delta
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.score import HorizonErrors
from trueup.calibrate.delta.states import with_base
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.models.delta_net import DeltaNet, DeltaSpec, load_delta, save_delta
from trueup.report.calibration.delta import next_steps
from trueup.robot.load import load_robot
from trueup.world.actuators.target_stages import LearnedDelta
from trueup.world.batch import BatchSim, SimCfg

QUICK = DeltaCfg(windows=400, rounds=3, hidden=())


@pytest.mark.medium
def test_a_weak_servo_is_corrected_by_what_theory_says(tmp_path: Path) -> None:
    """With kp 0.65 of the simulator's the ideal correction is -0.35 (q* - q)."""
    log = recorded("so101", 12.0)
    result = calibrate_delta("so101", [log], QUICK, folder=tmp_path)
    assert result.corrected.joint_rad[-1] < 0.35 * result.without.joint_rad[-1]
    net = load_delta(tmp_path)
    count = QUICK.past
    past = np.stack([np.roll(log["target_pos"], 1 + k, axis=0) for k in range(count)], axis=1)
    x = net.inputs(log["target_pos"], log["joint_pos"], log["joint_vel"], None, past)[count:]
    ideal = -(1.0 - SHARE) * (log["target_pos"] - log["joint_pos"])[count:]
    found = net(x)
    slope = np.sum(found * ideal) / np.sum(ideal**2)
    assert slope == pytest.approx(1.0, abs=0.1)


@pytest.mark.medium
def test_a_simulator_that_is_right_needs_no_correction() -> None:
    result = calibrate_delta("so101", [recorded("so101", 12.0, share=1.0)], QUICK)
    x = np.random.default_rng(0).uniform(result.net.low, result.net.high, (200, result.net.spec.ninput))
    assert np.abs(result.net(x)).max() < 0.01
    assert result.corrected.global_mm[-1] <= result.without.global_mm[-1]


@pytest.mark.medium
def test_only_the_joints_named_are_corrected() -> None:
    cfg = replace(QUICK, joints=("elbow_flex",), rounds=1)
    result = calibrate_delta("so101", [recorded("so101", 8.0)], cfg)
    x = np.random.default_rng(0).uniform(result.net.low, result.net.high, (50, result.net.spec.ninput))
    moved = np.abs(result.net(x)).max(axis=0) > 0
    names = load_robot("so101").spec.joint_names
    assert [name for name, one in zip(names, moved, strict=True) if one] == ["elbow_flex"]


def test_joints_that_do_not_exist_and_logs_too_short_are_refused() -> None:
    log = recorded("so101", 8.0)
    with pytest.raises(TrueupError, match="has no joints"):
        calibrate_delta("so101", [log], replace(QUICK, joints=("knee",)))
    with pytest.raises(TrueupError, match="too short"):
        calibrate_delta("so101", [log.window(0, 60)], QUICK)


def small_net(name: str = "so101", **changed: object) -> DeltaNet:
    spec = load_robot(name).spec
    made = DeltaSpec(
        robot=spec.name,
        joint_names=spec.joint_names,
        default_pose=tuple(spec.default_pose.tolist()),
        corrected=(0, 2),
        base=False,
        rate_hz=spec.control_hz,
        limit_rad=0.2,
    )
    rng, one = np.random.default_rng(3), np.ones(made.ninput, np.float32)
    layers = (
        (rng.normal(size=(8, made.ninput)).astype(np.float32), np.zeros(8, np.float32)),
        (rng.normal(size=(2, 8)).astype(np.float32), np.zeros(2, np.float32)),
    )
    linear = rng.normal(size=(2, made.ninput)).astype(np.float32)
    numbers = {"linear": linear, "mean": 0 * one, "std": one, "low": -one, "high": one} | changed
    return DeltaNet(spec=made, layers=layers, **numbers)  # type: ignore[arg-type]


def test_a_saved_delta_action_gives_the_same_numbers(tmp_path: Path) -> None:
    net = small_net()
    save_delta(net, tmp_path)
    x = np.random.default_rng(1).normal(size=(20, net.spec.ninput))
    np.testing.assert_array_equal(load_delta(tmp_path)(x), net(x))


def test_corrections_are_limited_and_held_at_the_edge_of_the_data() -> None:
    net = small_net()
    far = 50.0 * np.sign(np.random.default_rng(1).normal(size=(20, net.spec.ninput)))
    assert np.abs(net(far)).max() <= 0.2
    np.testing.assert_allclose(net(far), net(np.clip(far, -1.0, 1.0)))
    assert (net.outside(far) == 1.0).all()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"robot": 3}', b"\xff\xfe"])
def test_files_that_are_no_delta_action_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    save_delta(small_net(), tmp_path)
    (tmp_path / "delta.json").write_bytes(content)
    with pytest.raises(TrueupError, match="delta"):
        load_delta(tmp_path)


def test_spoiled_numbers_are_refused(tmp_path: Path) -> None:
    save_delta(small_net(), tmp_path)
    (tmp_path / "delta.safetensors").write_bytes(b"nothing")
    with pytest.raises(TrueupError, match="numbers"):
        load_delta(tmp_path)
    with pytest.raises(TrueupError, match="finite"):
        small_net(linear=np.full((2, 18), np.nan, np.float32))


def test_another_robot_and_another_rate_are_refused() -> None:
    go2 = BatchSim(load_robot("go2"), SimCfg(nsim=1), target_stages=(LearnedDelta(small_net()),))
    with pytest.raises(TrueupError, match="other joints"):
        go2.step(go2.joint_pos)
    cfg = SimCfg(nsim=1, control_hz=25.0, physics_hz=250.0)
    slow = BatchSim(load_robot("so101"), cfg, target_stages=(LearnedDelta(small_net()),))
    with pytest.raises(TrueupError, match="25 Hz"):
        slow.step(slow.joint_pos)


def test_a_late_command_is_corrected_by_the_targets_before() -> None:
    """A command that acts one control step late: delta = q*(-1) - q*, whatever the state."""
    spec = replace_spec(small_net().spec, past=2, corrected=(0,))
    n = len(spec.joint_names)
    one = np.ones(spec.ninput, np.float32)
    linear = np.zeros((1, spec.ninput), np.float32)
    own = spec.own(0)
    assert own == (0, n, 2 * n, 3 * n, 4 * n, 5 * n)
    linear[0, own[4]] = 1.0
    net = DeltaNet(spec=spec, linear=linear, layers=(), mean=0 * one, std=one, low=-9 * one, high=9 * one)
    rng = np.random.default_rng(4)
    target, past = rng.uniform(-0.01, 0.01, (5, n)), rng.uniform(-0.01, 0.01, (5, 2, n))
    found = net(net.inputs(target, rng.normal(size=(5, n)), rng.normal(size=(5, n)), None, past))
    np.testing.assert_allclose(found[:, 0], past[:, 0, 0] - target[:, 0], atol=1e-4)
    assert not found[:, 1:].any()


def test_a_simulation_sees_the_targets_that_came_before() -> None:
    """The stage remembers by itself what a log would tell it, from a reset or from a replay's past."""
    robot = load_robot("so101")
    spec = replace_spec(small_net().spec, past=2)
    one = np.ones(spec.ninput, np.float32)
    linear = np.zeros((2, spec.ninput), np.float32)
    net = DeltaNet(spec=spec, linear=linear, layers=(), mean=0 * one, std=one, low=-9 * one, high=9 * one)
    stage = LearnedDelta(net)
    sim = BatchSim(robot, SimCfg(nsim=2), target_stages=(stage,))
    np.testing.assert_allclose(stage.memory()["past"], np.repeat(sim.joint_pos[:, None], 2, axis=1))
    targets = robot.spec.default_pose + np.array([[0.1], [0.2], [0.3]])
    for target in targets:
        sim.step(target)
    np.testing.assert_allclose(stage.memory()["past"][1], targets[[2, 1]])
    before = sim.state()
    sim.step(targets[0])
    sim.restore(before)
    np.testing.assert_allclose(stage.memory()["past"][1], targets[[2, 1]])
    stage.prime(np.stack([targets, targets + 1.0]))
    np.testing.assert_allclose(stage.memory()["past"], np.stack([targets, targets + 1.0])[:, [2, 1]])


@pytest.mark.medium
def test_every_method_is_scored_on_the_same_held_out_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Identification and the delta action both explain a weak servo; noise explains nothing."""
    cfg = replace(QUICK, windows=200, rounds=2, ppo_steps=4_000)
    brief = replace(
        uan.CFG, regress=replace(uan.CFG.regress, rounds=1, steps=500, corrections=(2, 1), ways=("corrected",))
    )
    monkeypatch.setattr(uan, "CFG", brief)
    problem = DeltaProblem(load_robot("so101"), [recorded("so101", 8.0)], cfg, holdout=[recorded("so101", 5.0, seed=2)])
    assert problem.scored.min() >= 8 * 30  # rows of the held-out log only
    learned, scored = score_all(problem)
    at_1s = {one.name: one.errors.global_mm[-1] for one in scored}
    assert tuple(at_1s) == METHODS
    assert at_1s["nothing"] == learned.without.global_mm[-1]
    assert at_1s["delta action"] < 0.2 * at_1s["nothing"]
    assert at_1s["identification"] < 0.2 * at_1s["nothing"]
    assert at_1s["identification as published"] < 0.2 * at_1s["nothing"]  # a gain is among what it fits
    assert at_1s["delta dynamics"] < at_1s["nothing"]
    assert at_1s["UAN"] < 0.5 * at_1s["nothing"]
    assert 0.0 < at_1s["delta action by PPO"] <= at_1s["nothing"]  # what it learns in longer is in test_delta_ppo
    assert at_1s["action noise"] > 0.8 * at_1s["nothing"]


@pytest.mark.parametrize(
    ("errors", "best"),
    [
        ({"nothing": 50.0, "identification": 20.4, "delta action": 30.0, "UAN": 10.0}, "identification"),
        ({"nothing": 50.0, "identification": 20.4, "identification and delta action": 20.0}, "identification"),
        ({"nothing": 50.0, "identification": 30.0, "identification and delta action": 20.0},
         "identification and delta action"),
        ({"nothing": 50.0, "delta action": 20.0, "identification": 30.0}, "delta action"),
        ({"nothing": 50.0, "delta action": 60.0, "identification": 49.0}, "nothing"),
    ],
)  # fmt: skip
def test_what_is_recommended_is_the_best_that_a_policy_can_train_under(errors: dict[str, float], best: str) -> None:
    scored = [
        ScoredMethod(name=name, errors=HorizonErrors((0.0,), (0.0,), (error,)), seconds=0.0)
        for name, error in errors.items()
    ]
    assert recommended(scored) == best
    lines = next_steps(scored, Path("delta"), helps=best != "nothing")
    assert any("--params" in line for line in lines) == ("identif" in best)
    assert any("--delta" in line for line in lines) == ("action" in best)


def replace_spec(spec: DeltaSpec, **changed: object) -> DeltaSpec:
    return msgspec.structs.replace(spec, **changed)


def test_layers_of_other_widths_than_the_spec_are_refused() -> None:
    good = small_net()
    with pytest.raises(TrueupError, match="do not fit 24 inputs and 2 outputs"):
        replace(good, layers=good.layers[:1])
    (weight, bias), last = good.layers
    with pytest.raises(TrueupError, match="not finite"):
        replace(good, layers=((np.full_like(weight, np.nan), bias), last))


def test_the_spin_of_a_base_without_gyro_is_that_of_its_own_frame() -> None:
    """A go2 that pitches nose down by 0.5 rad, then turns about the vertical: its spin has a part along its x axis."""
    robot, rate = load_robot("go2"), 100.0
    angle = 0.8 * np.arange(200) / rate
    pitch, yaw = Rotation.from_euler("y", 0.5), Rotation.from_euler("z", angle[:, None])
    njoint = robot.spec.njoint
    still = np.tile(robot.spec.default_pose, (200, 1))
    log = Log(
        joint_names=robot.spec.joint_names,
        time=np.arange(200) / rate,
        signals={
            "joint_pos": still,
            "joint_vel": np.zeros((200, njoint)),
            "target_pos": still,
            "imu_quat": (yaw * pitch).as_quat(scalar_first=True),
        },
    )
    found = with_base(robot, log)["imu_gyro"]
    np.testing.assert_allclose(found, np.tile(pitch.inv().apply([0.0, 0.0, 0.8]), (200, 1)), atol=1e-6)
