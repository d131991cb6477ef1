"""Left and right: mirrored minibatches and statistics by hand, for signs and for rows that do not halve."""

import numpy as np
import pytest
import torch

from trueup.policy.normalizer import Normalizer
from trueup.rl.collect import Reflection, make_symmetric, mirror_rules
from trueup.rl.env import Mirror

ONES = np.ones(2, np.float32)
# two joints that change places, one of them turned; the critic also sees two hidden factors that change places
MIRROR = Mirror(
    actor_index=np.array([1, 0]),
    actor_sign=np.array([-1, -1], np.float32),
    critic_index=np.array([1, 0, 3, 2]),
    critic_sign=np.array([-1, -1, 1, 1], np.float32),
    action_index=np.array([0, 1]),
    action_sign=np.array([1, -1], np.float32),
)


def test_the_rules_of_hidden_factors_are_the_end_of_the_critic_s():
    index, sign = mirror_rules(MIRROR, 2)["privileged"]
    assert (index.tolist(), sign.tolist()) == ([1, 0], [1.0, 1.0])
    assert mirror_rules(MIRROR, 0)["privileged"][0].tolist() == []


def test_the_first_half_is_mirrored_with_its_signs_and_the_odd_row_is_not():
    reflection = Reflection(MIRROR, 2)
    actor, action = torch.arange(1.0, 7.0).view(3, 2), torch.arange(1.0, 7.0).view(3, 2)
    reflection(actor=actor, action=action)
    assert actor.tolist() == [[-2, -1], [3, 4], [5, 6]]
    assert action.tolist() == [[1, -2], [3, 4], [5, 6]]


def test_mirrored_twice_is_what_it_was():
    reflection, torch_rng = Reflection(MIRROR, 2), torch.Generator().manual_seed(0)
    critic = torch.randn(6, 4, generator=torch_rng)
    before = critic.clone()
    reflection(critic=critic)
    assert not torch.equal(critic[:3], before[:3])
    reflection(critic=critic)
    torch.testing.assert_close(critic, before, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_symmetric_statistics_are_those_of_the_data_with_its_mirror_image(sign):
    data = np.random.default_rng(0).normal([1.0, -3.0], [2.0, 0.5], (500, 2))
    normalizer, index = Normalizer(2), np.array([1, 0])
    normalizer.update(data)
    make_symmetric(normalizer, index, np.float32(sign) * ONES)
    both = np.concatenate([data, sign * data[:, index]])
    np.testing.assert_allclose(normalizer.mean, both.mean(axis=0))
    np.testing.assert_allclose(normalizer.var, both.var(axis=0))
