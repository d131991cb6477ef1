"""The environment: shapes, episodes, checkpoints."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.tasks.goals.goal import GoalPlace
from trueup.tasks.goals.velocity import Velocity, VelocityGoal
from trueup.tasks.load import EnvCfg, load_task, make_env, task_names
from trueup.tasks.task import Reward
from trueup.world.push import PushCfg
from trueup.world.randomization.adr import AdrCfg

pytestmark = pytest.mark.medium


def actions(env, step):
    return np.random.default_rng(step).normal(0.0, 0.5, (env.nenv, env.naction)).astype(np.float32)


def make(name="pendulum-swingup", **options):
    return make_env(load_task(name), EnvCfg(**({"nenv": 8, "threads": 1, "seed": 3} | options)))


@pytest.mark.parametrize("name", task_names())
def test_shapes_and_types_are_as_promised(name):
    env = make(name)
    obs = env.reset()
    step = env.step(actions(env, 0))
    for each in (obs, step.obs):
        assert each.actor.shape == (8, env.nactor)
        assert each.critic.shape == (8, env.ncritic)
        assert each.privileged.shape == (8, env.nprivileged)
        assert all(part.dtype == np.float32 and part.flags.c_contiguous for part in each)
    assert step.reward.shape == step.terminated.shape == step.truncated.shape == (8,)
    assert step.reward.dtype == np.float32
    assert all(np.isfinite(value) for value in step.metrics.values())


def make_short(name, **options):
    """Episodes of a second, with pushes all the time: much ends and begins."""
    task = load_task(name)
    pushes = PushCfg(every_s=(0.1, 0.3), seconds=0.1) if task.pushes else None
    task = replace(task, rates=replace(task.rates, episode_s=1.0), pushes=pushes)
    return make_env(task, EnvCfg(**({"nenv": 8, "threads": 1, "seed": 3} | options)))


@pytest.mark.parametrize(
    ("name", "adr"), [*((name, None) for name in task_names()), ("go2-velocity", AdrCfg(buffer=1, low=0.1, high=0.2))]
)
def test_continuing_from_a_state_is_bit_identical(name, adr):
    env = make_short(name, adr=adr)
    for k in range(70):
        env.step(actions(env, k))
    state = env.state()
    want = [env.step(actions(env, 70 + k)) for k in range(70)]
    assert sum(len(step.ended) for step in want) >= 8
    if adr is not None:
        assert want[0].metrics["adr/log_width"] > np.log(1e-3)  # ranges have grown
    other = make_short(name, adr=adr, threads=2)
    other.restore(state)
    for k, expected in enumerate(want):
        found = other.step(actions(env, 70 + k))
        for a, b in zip(expected.obs, found.obs, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(expected.reward, found.reward)
        np.testing.assert_array_equal(expected.ended, found.ended)
        assert expected.metrics == found.metrics


def test_parameters_set_by_hand_outlast_an_episode():
    env = make_short("go2-velocity", randomize=False)
    env.sim.params.set("mass_scale", 1.5, of="base")
    assert sum(len(env.step(actions(env, k)).ended) for k in range(60)) > 0
    weight = env.sim.batch.expand("body_subtreemass")[:, 1]
    assert (weight > 1.1 * env.sim.model.body_subtreemass[1]).all()


def test_a_row_is_the_same_alone_and_among_others():
    many, alone = make(nenv=8, stagger=False), make(nenv=1, first_row=5, stagger=False)
    for k in range(20):
        action = actions(many, k)
        a, b = many.step(action), alone.step(action[5:6])
        np.testing.assert_array_equal(a.obs.actor[5], b.obs.actor[0])
        assert a.reward[5] == b.reward[0]


def test_rows_that_end_return_their_last_observation_and_begin_anew():
    env = make(stagger=False)
    for k in range(150):
        before = env.obs
        step = env.step(actions(env, k))
        if len(step.ended):
            break
    assert k == 149  # 6 s at 25 Hz
    assert step.truncated.all()
    assert not step.terminated.any()
    assert step.last.actor.shape == (8, env.nactor)
    assert np.abs(step.last.actor[:, :3] - before.actor[:, :3]).max() < 1.5  # continues the old episode
    assert np.all(np.abs(step.obs.actor[:, 3]) <= 0.2 + 1e-6)  # at most 1 rad/s at the start
    assert not step.obs.actor[:, 4].any()  # no last action


def test_a_state_of_another_environment_is_refused():
    with pytest.raises(TrueupError, match="does not fit"):
        make(nenv=8).restore(make(nenv=4).state())


def test_a_row_of_randomised_robots_is_the_same_alone_and_among_others():
    many = make("go2-velocity", nenv=8, stagger=False)
    alone = make("go2-velocity", nenv=1, first_row=5, stagger=False)
    for k in range(20):
        action = actions(many, k)
        a, b = many.step(action), alone.step(action[5:6])
        for one, other in zip(a.obs, b.obs, strict=True):
            np.testing.assert_array_equal(one[5], other[0])
        assert a.reward[5] == b.reward[0]


def test_the_asked_share_of_commands_goes_straight():
    cfg = VelocityGoal(standing=0.1, straight=0.6, small=0.0)
    sim = SimpleNamespace(nsim=4000, control_dt=0.02)
    commands = Velocity(cfg, GoalPlace(sim, (), RowRandom(0, "command", 4000)))
    commands.reset(np.arange(4000))
    moving = np.abs(commands.values).sum(axis=1) > 0
    straight = moving & (commands.values[:, 2] == 0.0)
    assert abs(1.0 - moving.mean() - 0.1) < 0.02
    assert abs(straight.mean() - 0.6) < 0.03


def test_commands_stay_in_range_and_some_ask_to_stand():
    env = make("go2-velocity", nenv=512)
    values = env.goal.values
    assert np.abs(values).max(axis=0) == pytest.approx([1.0, 0.5, 1.0], abs=0.02)
    assert 0.05 < (values == 0).all(axis=1).mean() < 0.2


def test_first_episodes_end_at_different_times():
    env = make(nenv=64)
    ends = [len(env.step(actions(env, k)).ended) for k in range(150)]
    assert sum(ends) == 64
    assert max(ends) < 10


def test_a_simulation_that_blows_up_ends_and_begins_anew():
    env = make("go2-velocity")
    env.sim.qvel[2] = 1e15
    step = env.step(actions(env, 0))
    assert step.terminated[2]
    assert not step.terminated[[0, 1, 3, 4, 5, 6, 7]].any()
    assert np.isfinite(step.reward).all()
    assert all(np.isfinite(part).all() for part in (*step.obs, *step.last))
    assert not env.sim.diverged.any()


def test_ranges_and_pushes_grow_over_the_ramp_and_go_on_after_a_restore():
    task = replace(load_task("go2-velocity"), ramp_s=(0.1, 0.3))
    cfg = EnvCfg(nenv=4, threads=1, seed=3, training=True)
    env, whole = make_env(task, cfg), make_env(task, replace(cfg, training=False))
    assert whole.variation.randomizer is not None
    full = whole.variation.randomizer.bounds
    seen = []
    for _ in range(20):
        env.step(np.zeros((4, env.naction), np.float32))
        assert env.variation.randomizer is not None
        seen.append(env.variation.randomizer.bounds.copy())
    start = env.variation.randomizer.start_point
    np.testing.assert_allclose(seen[4], np.stack([start, start], axis=1))
    np.testing.assert_allclose(seen[10], start[:, None] + 0.5 * (full - start[:, None]))
    np.testing.assert_allclose(seen[-1], full)
    other = make_env(task, cfg)
    other.restore(env.state())
    action = np.full((4, env.naction), 0.1, np.float32)
    np.testing.assert_array_equal(env.step(action).obs.critic, other.step(action).obs.critic)


def test_a_task_of_the_users_own_is_loaded_from_a_file(tmp_path):
    text = "from trueup.tasks.load import load_task\n\n\ndef mine():\n    return load_task('pendulum-swingup')\n"
    (tmp_path / "mine.py").write_text(text + "\n\ndef wrong():\n    return 1\n")
    assert load_task(f"{tmp_path}/mine.py:mine").robot == "pendulum"
    with pytest.raises(TrueupError, match="must return a"):
        load_task(f"{tmp_path}/mine.py:wrong")


def test_late_rewards_count_by_the_share_of_the_ramp():
    task = load_task("go2-velocity")
    late = {"tilt": Reward(lambda frame: np.ones(4, np.float32), -50.0, late=True)}
    task = replace(task, rewards={task.score: task.rewards[task.score], **late}, ramp_s=(0.0, 0.2))
    env = make_env(task, EnvCfg(nenv=4, threads=1, training=True))
    cost = []
    for _ in range(12):
        step = env.step(np.zeros((4, env.naction), np.float32))
        cost.append(step.reward - task.rewards[task.score].weight * 0.02 * env._terms[0])
    np.testing.assert_allclose(np.array(cost)[:, 0], -np.minimum(np.arange(12) / 10, 1.0), atol=1e-5)


def test_policies_are_asked_gently_and_judged_by_what_was_asked():
    env = make_env(load_task("go2-velocity"), EnvCfg(nenv=2, threads=1, randomize=False, pushes=False))
    env.goal.hold(np.array([1.0, 0.0, 0.0], np.float32))
    seen = []
    for _ in range(30):
        env.step(np.zeros((2, 12), np.float32))
        seen.append(env._sense.frame.command[0, 0])
    pace = env.task.goal.rate[0] * env.control_dt
    np.testing.assert_allclose(np.diff(seen)[1 : int(1.0 / pace) - 2], pace, atol=1e-5)
    assert pace < 0.2  # the command is not there at once
    np.testing.assert_allclose(seen[-1], 1.0)
    frame = env._sense.frame
    frame.command[:] = frame.base_vel  # were this the reference, there would be no error
    assert (env.task.metrics["velocity_error"](frame) > 0.7).all()
    training = make_env(load_task("go2-velocity"), EnvCfg(nenv=2, threads=1, training=True))
    training.step(np.zeros((2, 12), np.float32))
    np.testing.assert_array_equal(training._sense.frame.command, training._sense.frame.asked)
    assert training.policy_spec().observation.command_step  # what it learns is asked gently nevertheless
