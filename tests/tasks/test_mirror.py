"""The mirror, checked against the physics: a mirrored state under mirrored actions stays the mirror image."""

import numpy as np
import pytest

from trueup.tasks.load import EnvCfg, load_task, make_env

pytestmark = pytest.mark.medium
_BODY = np.array([1, -1, 1, 1, -1, 1, -1.0])  # position x y z, quaternion w x y z
_MOTION = np.array([1, -1, 1, -1, 1, -1.0])


def mirrored(env, values, head):
    """qpos or qvel mirrored: the base's part by `head`, the joints by the environment's own mirror."""
    joints = values[:, len(head) :][:, env.mirror.action_index] * env.mirror.action_sign
    return np.concatenate([values[:, : len(head)] * head, joints], axis=1)


@pytest.fixture
def env():
    return make_env(
        load_task("go2-velocity"), EnvCfg(nenv=2, threads=1, seed=5, randomize=False, pushes=False)
    )


def test_mirroring_twice_gives_back_what_was(env):
    for index, sign in zip(env.mirror[::2], env.mirror[1::2], strict=True):
        np.testing.assert_array_equal(index[index], np.arange(len(index)))
        np.testing.assert_array_equal(sign * sign[index], 1.0)
    assert len(env.mirror.actor_index) == env.nactor
    assert len(env.mirror.critic_index) == env.ncritic


def test_mirrored_state_and_action_give_the_mirrored_next_state(env):
    sim, rng = env.sim, np.random.default_rng(0)
    qpos, qvel = sim.qpos[:1].copy(), sim.qvel[:1].copy()
    qvel += rng.normal(0.0, 0.3, qvel.shape)
    sim.reset(
        qpos=np.concatenate([qpos, mirrored(env, qpos, _BODY)]),
        qvel=np.concatenate([qvel, mirrored(env, qvel, _MOTION)]),
    )
    for _ in range(10):
        action = rng.normal(0.0, 0.5, (1, env.naction)).astype(np.float32)
        other = action[:, env.mirror.action_index] * env.mirror.action_sign
        sim.step(env._map.target(np.concatenate([action, other])))
    np.testing.assert_allclose(sim.qpos[1:], mirrored(env, sim.qpos[:1], _BODY), atol=2e-3)
    np.testing.assert_allclose(sim.qvel[1:], mirrored(env, sim.qvel[:1], _MOTION), atol=0.1)


def test_observations_of_mirror_images_are_mirror_images(env):
    sim, rng = env.sim, np.random.default_rng(1)
    qpos, qvel = sim.qpos[:1].copy(), sim.qvel[:1].copy()
    qvel += rng.normal(0.0, 0.3, qvel.shape)
    sim.qpos[:] = np.concatenate([qpos, mirrored(env, qpos, _BODY)])
    sim.qvel[:] = np.concatenate([qvel, mirrored(env, qvel, _MOTION)])
    sim.batch.forward()
    sim.sensors._sigma[:] = 0.0
    sim.sensors.sample()
    command = np.array([[0.5, 0.2, -0.3], [0.5, -0.2, 0.3]], np.float32)
    frame = env._sense.read(command)
    action = rng.normal(0.0, 0.5, (1, env.naction)).astype(np.float32)
    frame.action[:] = np.concatenate([action, action[:, env.mirror.action_index] * env.mirror.action_sign])
    actor = env._builder.restart(env._reading(), command, frame.action)  # the past is as the present
    critic = env._critic(actor, None)
    for values, index, sign in (
        (actor, env.mirror.actor_index, env.mirror.actor_sign),
        (critic, env.mirror.critic_index, env.mirror.critic_sign),
    ):
        np.testing.assert_allclose(values[1], values[0, index] * sign, atol=1e-3)
