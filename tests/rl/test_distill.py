"""Students come close to teachers who know what they do not, and continue bit for bit."""

import numpy as np
import pytest
import torch
from toy_env import ToyEnv

from trueup.rl.distill import Distiller
from trueup.rl.ppo import Ppo
from trueup.rl.settings import DistillCfg, NetCfg, PpoCfg

NET = NetCfg(actor=(32, 32), critic=(32, 32), std=0.7, latent=2, encoder=(16,))
HIDDEN = 1.5


@pytest.fixture(scope="module")
def teacher():
    ppo = Ppo(ToyEnv(32, hidden=HIDDEN), PpoCfg(steps=16, minibatches=2, epochs=4, net=NET), seed=1)
    for _ in range(40):
        ppo.iterate()
    ppo.close()
    return ppo.policy()


def _student(teacher, kind, seed=0):
    cfg = DistillCfg(kind=kind, history=6, hidden=(64,), epochs=4, learning_rate=3e-3)
    return Distiller(ToyEnv(32, hidden=HIDDEN, seed=5), cfg, seed, teacher)


@pytest.mark.parametrize("kind", ["latent", "action"])
def test_the_student_learns_what_the_teacher_knows(teacher, kind):
    student = _student(teacher, kind)
    history = [student.iterate() for _ in range(80)]
    spread = float(student._targets.var(dim=0).mean())
    assert np.mean([row["distill_loss"] for row in history[-10:]]) < 0.3 * spread
    if kind == "action":
        distance = [row["distance"] for row in history]
        assert np.mean(distance[-20:]) < 0.7 * np.mean(distance[:5])


def test_a_restored_student_continues_bit_for_bit(teacher):
    whole, half, resumed = (_student(teacher, "latent") for _ in range(3))
    for _ in range(6):
        whole.iterate()
    for _ in range(3):
        half.iterate()
    resumed.restore({name: value.copy() for name, value in half.state().items()})
    for _ in range(3):
        resumed.iterate()
    a, b = whole.state(), resumed.state()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_the_teacher_does_not_change(teacher):
    student = _student(teacher, "action")
    student.iterate()
    np.testing.assert_array_equal(student.state()["teacher/actor/0/weight"], teacher.actor[0][0])
    assert torch.isfinite(student.parameters.flat).all()


def test_an_episode_starts_with_an_empty_past(teacher):
    student = _student(teacher, "latent")
    for _ in range(5):
        student.iterate()
    ages = student.env.age
    frames = student.past.frames
    for row in np.flatnonzero(ages < 5):
        empty = frames.shape[1] - ages[row]
        assert not frames[row, :empty].any()
