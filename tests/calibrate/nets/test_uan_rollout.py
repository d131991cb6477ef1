"""What UAN's trainers share: the range of signals, inputs of a rollout, inertia and noise of logs."""

import mujoco
import numpy as np
import pytest
from made_nets import made_net
from residual_logs import residual_log

from trueup.calibrate.nets.uan.rollout import (
    NetRollout,
    encoder_noise,
    joint_inertia,
    make_tracks,
    no_range,
    wider,
    with_range,
)
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

PENDULUM = load_robot("pendulum")


def test_a_range_widens_only():
    net = made_net()
    shape = (net.spec.njoint, len(net.spec.signals))
    rows = np.stack([np.full(shape, -1.0, np.float32), np.full(shape, 2.0, np.float32)])
    found = wider(wider(no_range(net.spec), rows), 0.5 * rows)
    np.testing.assert_array_equal(found, rows)


def test_the_range_of_a_net_is_that_of_its_groups_with_a_margin():
    net = made_net()
    shape = (net.spec.njoint, len(net.spec.signals))
    low = -np.arange(1.0, 1.0 + net.spec.njoint, dtype=np.float32)[:, None] * np.ones(shape, np.float32)
    made = with_range(net, np.stack([low, -low]))
    for g, group in enumerate(net.spec.groups):
        most = max(group) + 1.0
        np.testing.assert_allclose(made.high[g], 1.2 * most, rtol=1e-6)
        np.testing.assert_allclose(made.low[g], -1.2 * most, rtol=1e-6)


def test_inputs_are_the_newest_signal_first_at_every_step():
    net = made_net()
    spec, nwindow, steps = net.spec, 3, 5
    count = spec.depth + steps
    signals = np.zeros((count, len(spec.signals), nwindow, spec.njoint), np.float32)
    signals += np.arange(count, dtype=np.float32)[:, None, None, None]  # every signal is its own time
    inputs = NetRollout(signals, np.zeros((nwindow, 1, spec.njoint))).inputs(spec)
    assert inputs.shape == (steps, nwindow, spec.njoint, len(spec.signals), len(spec.taps))
    for t in range(steps):
        expected = spec.depth + t - np.array(spec.taps)
        np.testing.assert_array_equal(inputs[t, 0, 0, 0], expected)
    low, high = NetRollout(signals, np.zeros((1, 1, 1))).widen(no_range(spec))
    assert (low == 0.0).all()
    assert (high == count - 1).all()


def test_inertia_is_the_engines_with_the_armature_that_is_set():
    robot = load_robot("z1")
    sim = BatchSim(robot, SimCfg(nsim=2, model=ModelCfg(base="fixed")))
    armature = np.array([[0.01], [0.05]]) * np.ones((1, robot.spec.njoint))
    sim.params.set("armature", armature)
    found = joint_inertia(sim)
    np.testing.assert_allclose(found, found.transpose(0, 2, 1), atol=1e-9)
    assert (np.linalg.eigvalsh(found) > 0).all()
    data, full = mujoco.MjData(sim.model), np.zeros((sim.model.nv, sim.model.nv))
    data.qpos[:] = sim.default_qpos
    mujoco.mj_forward(sim.model, data)
    mujoco.mj_fullM(sim.model, data, full)
    dof = sim.index.dof
    own = full[np.ix_(dof, dof)] - np.diag(sim.model.dof_armature[dof])
    np.testing.assert_allclose(found[1] - own, np.diag(armature[1]), atol=1e-9)


@pytest.mark.parametrize("noise", [2e-4, 1e-3])
def test_encoder_noise_is_found_over_all_logs(noise: float):
    tracks = make_tracks(PENDULUM, [residual_log(PENDULUM, seed=k, seconds=4.0, noise=noise) for k in (0, 1)])
    assert len(np.unique(tracks.first)) == 2
    assert encoder_noise(tracks)[0] == pytest.approx(noise, rel=0.2)
