"""A policy computed again on a simulated robot's log: what feeds it, when and how often is told where it is planted."""

import itertools
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pytest
from made_deploys import standing_bundle

from trueup.data.log import Log
from trueup.deploy.control.controller import ControlCfg, Controller
from trueup.gap.causes.policy_replay import control_steps
from trueup.gap.causes.policy_side import feedings, try_policy
from trueup.gap.config import GapCfg
from trueup.gap.gap import gap
from trueup.hardware.driver import RobotState
from trueup.policy.bundle.bundle import write_bundle
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.net import NetWiring, PolicyNet
from trueup.policy.normalizer import Normalizer
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

ROBOT, RATE, SECONDS = "go2", 200.0, 4.0


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """What is wrong in the program that runs the policy: the network's input, rows of delay, rate, terms unscaled.

    noise  of the readings that are recorded, of which the policy saw others: rad; 30 times as much of speeds and spin
    kp     times the gain that the log tells; delay_s: until a command is heard
    """

    normalizer: Normalizer | None = None
    late: int = 0
    hz: float = 50.0
    unscaled: str = ""
    noise: float = 0.0
    kp: float = 1.0
    delay_s: float = 0.0


def _statistics(nobs, mean, var):
    out = Normalizer(nobs)
    out.mean, out.var, out.count = np.full(nobs, mean), np.full(nobs, var), 1.0
    return out


def _net(nobs, normalizer):
    rng = np.random.default_rng(3)
    layers = tuple(
        (rng.normal(0.0, n**-0.5, (m, n)).astype(np.float32), rng.normal(0.0, 0.1, m).astype(np.float32))
        for n, m in itertools.pairwise((nobs, 32, 12))
    )
    return PolicyNet(spec=NetWiring(), actor=layers, normalizer=normalizer)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """The bundle, and the same network on other statistics, as a program would run it that has them wrong."""
    folder = tmp_path_factory.mktemp("bundles")
    passport = standing_bundle(folder / "standing").passport
    nobs = passport.policy.observation.nactor

    def made(name, normalizer):
        return write_bundle(folder / name, passport, policy_onnx(_net(nobs, normalizer)))

    right = made("right", _statistics(nobs, 0.1, 0.25))
    return right, lambda normalizer: made("wrong", normalizer)


def _log(bundles, flaw):
    """A go2 that hangs and is moved by the policy, 200 rows a second."""
    bundle, other = bundles
    run = bundle if flaw.normalizer is None else other(flaw.normalizer)
    if flaw.unscaled:
        policy = run.passport.policy
        terms = [
            msgspec.structs.replace(one, scale=1.0) if one.signal == flaw.unscaled else one
            for one in policy.observation.terms
        ]
        seen = msgspec.structs.replace(policy.observation, terms=tuple(terms))
        policy = msgspec.structs.replace(policy, observation=seen)
        run = replace(run, passport=msgspec.structs.replace(run.passport, policy=policy))
    robot, rng = load_robot(ROBOT), np.random.default_rng(0)
    held = ModelCfg(base="fixed")
    sim = BatchSim(robot, SimCfg(threads=1, control_hz=RATE, physics_hz=RATE, model=held, max_delay_s=0.03))
    sim.reset()
    sim.params.set("delay", np.array([flaw.delay_s]))
    control = Controller(run, robot.spec.joint_names, ControlCfg(target_step=np.inf))
    sim.params.set("kp", flaw.kp * control.kp[None])
    sim.params.set("kd", control.kd[None])
    rows, states, target = [], [], np.array(robot.spec.default_pose)
    for k in range(round(SECONDS * RATE)):
        turned = 0.3 * np.sin(0.02 * k)
        states.append(
            RobotState(
                sequence=k, time_s=k / RATE, joint_pos=sim.joint_pos[0].copy(), joint_vel=sim.joint_vel[0].copy(),
                joint_torque=np.zeros(12), joint_temperature=np.zeros(12), voltage=24.0,
                imu_gyro=rng.normal(0.0, 0.2, 3), imu_quat=np.array([np.cos(turned / 2), np.sin(turned / 2), 0.0, 0.0]),
            )
        )  # fmt: skip
        if k % round(RATE / flaw.hz) == 0 and k >= 20:
            asked = np.array([0.5, -0.2, 0.4 if k > 400 else -0.6], np.float32)
            target = control.step(states[-1 - flaw.late], asked).target
        rows.append(target)
        sim.step(target[None])
    signals = {name: np.stack([getattr(one, name) for one in states])
               for name in ("joint_pos", "joint_vel", "imu_gyro", "imu_quat")}  # fmt: skip
    for name, unit in (("joint_pos", 1.0), ("joint_vel", 30.0), ("imu_gyro", 30.0)):
        signals[name] = signals[name] + rng.normal(0.0, flaw.noise * unit, signals[name].shape)
    signals |= {"target_pos": np.stack(rows), "target_kp": np.tile(control.kp, (len(rows), 1)),
                "target_kd": np.tile(control.kd, (len(rows), 1))}  # fmt: skip
    return Log(time=np.arange(len(rows)) / RATE, joint_names=robot.spec.joint_names, signals=signals,
               meta={"robot": ROBOT})  # fmt: skip


def _found(bundles, **flaw):
    return try_policy(bundles[0], _log(bundles, Flaw(**flaw)))


def test_a_policy_that_runs_as_it_should_has_no_cause(bundles):
    found = _found(bundles)
    assert found.causes == ()
    assert found.note.startswith("the policy computed again is 0.0 mrad")


@pytest.mark.parametrize(
    ("mean", "var", "words"),
    [(0.0, 0.99**2, "without its normaliser"), (0.0, 0.25, "without means"), (0.1, 0.0625, "divides by the variance")],
)
def test_a_normaliser_that_is_missing_or_another_is_named(bundles, mean, var, words):
    nobs = bundles[0].passport.policy.observation.nactor
    found = _found(bundles, normalizer=_statistics(nobs, mean, var))
    assert [one.cause for one in found.causes] == ["normaliser"]
    assert words in found.causes[0].evidence
    assert found.causes[0].explained(found.held) > 0.95


def test_a_scale_that_was_forgotten_is_named(bundles):
    found = _found(bundles, unscaled="joint_vel")
    assert [one.cause for one in found.causes] == ["normaliser"]
    assert "without the scale of joint_vel" in found.causes[0].evidence


@pytest.mark.parametrize("noise", [0.001, 0.003, 0.01])
def test_noise_delay_and_a_wrong_gain_name_no_normaliser(bundles, noise):
    found = _found(bundles, noise=noise, kp=0.7, delay_s=0.02)
    assert [one.cause for one in found.causes] == []


def test_a_forgotten_scale_is_named_through_noise(bundles):
    found = _found(bundles, unscaled="joint_vel", noise=0.001, kp=0.7, delay_s=0.02)
    assert [one.cause for one in found.causes] == ["normaliser"]


def test_states_that_are_older_than_half_a_step_are_a_loop_delay(bundles):
    found = _found(bundles, late=5)
    assert [one.cause for one in found.causes] == ["loop delay"]
    assert found.causes[0].size == pytest.approx(5 / RATE)
    assert _found(bundles, late=1).causes == ()


def test_another_rate_than_the_passports_is_told(bundles):
    found = _found(bundles, hz=40.0)
    assert [one.cause for one in found.causes] == ["policy rate"]
    assert found.causes[0].size == pytest.approx(40.0)


def test_targets_of_another_policy_are_no_cause_but_a_note(bundles):
    log = _log(bundles, Flaw())
    other = replace(log, signals=log.signals | {"target_pos": log["target_pos"][::-1].copy()})
    found = try_policy(bundles[0], other)
    assert found.causes == ()
    assert "does not give the recorded targets" in found.note


def test_logs_from_which_no_policy_can_be_computed_say_why(bundles):
    log = _log(bundles, Flaw())
    still = replace(log, signals=log.signals | {"target_pos": np.zeros_like(log["target_pos"])})
    assert "too few steps" in try_policy(bundles[0], still).note
    blind = replace(log, signals={name: values for name, values in log.signals.items() if name != "joint_vel"})
    assert "no joint_vel" in try_policy(bundles[0], blind).note


def test_steps_are_the_longest_stretch_of_even_changes():
    target = np.zeros((200, 1))
    target[10:30, 0] = np.arange(20)  # a ramp, every row
    target[30:, 0] = 20.0
    for k in range(60, 180, 5):
        target[k:, 0] += 1.0
    log = Log(time=np.arange(200) / 100.0, joint_names=("a",), signals={"joint_pos": target, "target_pos": target})
    steps = control_steps(log)
    assert steps.rows.tolist() == list(range(60, 180, 5))
    assert steps.period_s == pytest.approx(0.05)
    shorter = log.window(0, 110)  # the rest between ramp and policy is as long as the policy's part
    assert control_steps(shorter).rows.tolist() == list(range(60, 110, 5))


def test_the_passports_own_way_is_tried_first(bundles):
    words = [one.words for one in feedings(bundles[0])]
    assert words[0] == ""
    assert len(set(words)) == len(words)


@pytest.mark.medium
def test_the_diagnosis_names_the_policys_side_first_with_its_command(bundles, tmp_path):
    cfg = GapCfg(max_windows=8, wiring=False, pairs=False, horizons=False)
    found = gap(ROBOT, _log(bundles, Flaw(late=6)), cfg, bundle=bundles[0].path).result
    assert found.causes[0].name == "loop delay"
    assert "shadow" in found.causes[0].command
    assert found.causes[0].interval[0] > 0.5
    assert not found.nothing_wrong
    assert any("computed again" in note for note in found.notes)
