"""Pushes: size, duration and pauses, and that the robot feels them."""

import numpy as np

from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.push import PushCfg, Pushes


def test_pushes_last_as_long_and_are_as_strong_as_asked():
    sim = BatchSim(load_robot("go2"), SimCfg(nsim=20, threads=1))
    pushes = Pushes(sim, PushCfg(newton=50.0, seconds=0.1, every_s=(0.2, 0.4)))
    pushes.reset(np.arange(20))
    base = sim.model.body("base").id
    forces = []
    for _ in range(100):
        pushes.advance()
        forces.append(np.linalg.norm(sim.batch.bind("xfrc_applied")[:, base, :2], axis=1))
    forces = np.array(forces)
    assert forces.max() <= 50.0
    assert forces.max() > 30.0
    pushed = forces > 0
    lengths = [len(run) for row in pushed.T for run in "".join("x" if on else " " for on in row[5:90]).split()]
    assert max(lengths) == 5  # 0.1 s at 50 Hz
    assert 0.15 < pushed.mean() < 0.35


def test_a_push_moves_the_robot():
    places = []
    for newton in (0.0, 80.0):
        sim = BatchSim(load_robot("go2"), SimCfg(nsim=8, threads=1))
        pushes = Pushes(sim, PushCfg(newton=newton, every_s=(0.02, 0.02)))
        pushes.reset(np.arange(8))
        for _ in range(10):
            pushes.advance()
            sim.step(sim.robot.spec.default_pose)
        places.append(sim.qpos[:, :2].copy())
    assert np.linalg.norm(places[1] - places[0], axis=1).max() > 0.01
