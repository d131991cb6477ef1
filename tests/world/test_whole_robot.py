"""A robot that is held: tilt against gravity, a stand that gives way, constant torques, stops."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.parameters.fields import down, tilt_of
from trueup.world.replay.playback import start_at

ROBOT = load_robot("go2")


def held(base="fixed", nsim: int = 1, **more) -> BatchSim:
    return BatchSim(ROBOT, SimCfg(nsim=nsim, model=ModelCfg(base=base), **more))


def settle(sim: BatchSim, steps: int = 100) -> np.ndarray:
    for _ in range(steps):
        sim.step(ROBOT.spec.default_pose)
    return sim.joint_pos.copy()


def test_tilt_turns_gravity_and_is_read_back():
    tilt = np.random.default_rng(0).uniform(-0.4, 0.4, (20, 2))
    np.testing.assert_allclose(tilt_of(9.81 * down(tilt)), tilt, atol=1e-12)
    sim = held()
    sim.params.set("tilt", [0.0, 0.1])  # nose down: gravity pulls forward
    gravity = sim.params.get("gravity")[0]
    assert gravity[0] == pytest.approx(9.81 * np.sin(0.1))
    assert np.linalg.norm(gravity) == pytest.approx(9.81)


def test_a_constant_torque_moves_a_joint_by_torque_over_gain():
    sim = held(nsim=2)
    sim.params.set("friction", 0.0)
    sim.params.set("torque_offset", 1.0, of="FL_hip_joint", ids=np.array([1]))
    sim.reset()
    pos = settle(sim)
    assert pos[1, 0] - pos[0, 0] == pytest.approx(1.0 / 20.0, rel=0.1)  # kp 20, gravity a little
    np.testing.assert_allclose(pos[1, 3:], pos[0, 3:], atol=1e-6)


def test_a_stop_holds_the_joint_before_its_target():
    sim = held()
    sim.params.set("stop_high", -1.7, of="FL_calf_joint")
    sim.params.set("stop_stiffness", 40.0)
    sim.params.set("stop_damping", 3.0)
    sim.params.set("friction", 0.0)
    sim.params.set("gravity", 0.0)
    sim.reset()
    pressed = settle(sim, 400)[0, 2] + 1.7
    pull = 20.0 * (0.2 - pressed)  # kp times what is missing to the target of -1.5
    assert pressed == pytest.approx(pull / 40.0, rel=1e-3)


def test_stiffness_and_damping_of_a_stop_are_set_one_by_one():
    sim = held(nsim=2)
    before = sim.params.get("stop_damping")
    sim.params.set("stop_stiffness", 40.0, of="FL_calf_joint", ids=np.array([1]))
    np.testing.assert_allclose(sim.params.get("stop_damping"), before, rtol=1e-9)
    assert sim.params.get("stop_stiffness")[1, 2] == pytest.approx(40.0)


def test_a_stand_starts_where_it_carries_the_weight():
    sim = held("mount")
    start_at(sim, sim.default_qpos[None].copy(), np.zeros((1, sim.model.nv)))
    before = sim.qpos[:, :6].copy()
    assert before[0, 2] == pytest.approx(-9.81 / (2 * np.pi * 5) ** 2, rel=0.05)
    settle(sim, 10)
    np.testing.assert_allclose(sim.qpos[:, 2], before[:, 2], atol=2e-3)


def test_a_stiff_stand_is_a_fixed_base():
    fixed, stiff = held(), held("mount")
    stiff.params.set("mount_damping", stiff.params.get("mount_damping") * 1e4)
    stiff.reset()
    for t in range(50):
        target = ROBOT.spec.default_pose + 0.3 * np.sin(0.3 * t)
        fixed.step(target)
        stiff.step(target)
    np.testing.assert_allclose(stiff.joint_pos, fixed.joint_pos, atol=2e-3)


def test_a_stand_that_is_not_there_is_asked_for_by_name():
    with pytest.raises(TrueupError, match='base="mount"'):
        held().params.get("mount_stiffness")
    with pytest.raises(TrueupError, match="friction='M3'"):
        held().params.get("friction_kl")
