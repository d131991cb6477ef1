"""The walk through one control step of training: how many modules a reader meets."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import trueup
from trueup.rl.ppo import Ppo
from trueup.rl.settings import PpoCfg
from trueup.tasks.env import EnvCfg
from trueup.tasks.load import load_task, make_env

ROOT = Path(trueup.__file__).parent
# a task's own step and what it shares with the robot, then the learner's part; physics and random numbers are below
TASK, LEARNER, ALL = ("tasks/", "policy/"), ("rl/",), ("",)


@contextmanager
def met() -> Iterator[set[str]]:
    """Modules whose functions are called within."""
    found: set[str] = set()

    def watch(frame, event, arg):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            found.add(str(Path(code.co_filename).relative_to(ROOT).with_suffix("")))

    sys.setprofile(watch)
    try:
        yield found
    finally:
        sys.setprofile(None)


def test_a_reader_meets_at_most_twelve_modules_of_a_task_in_a_step_and_six_of_the_learner():
    env = make_env(load_task("go2-velocity"), EnvCfg(nenv=4, threads=1, training=True, stagger=False))
    learner = Ppo(env, PpoCfg(steps=2, side_by_side=False))
    env.reset()
    action = np.zeros((4, env.naction), np.float32)
    env.step(action)
    with met() as step:
        ended = env.step(action).ended
    with met() as whole:
        learner.collector.collect(learner.actor, learner.rollout, np.random.default_rng(0))
    learner.close()
    counts = {stage: sorted(name for name in step | whole if name.startswith(stage)) for stage in (LEARNER, ALL)}
    mine = sorted(name for name in step if name.startswith(TASK))
    assert not len(ended)
    assert {"tasks/env", "tasks/sensing/signals", "policy/observation", "policy/action"} <= set(mine)
    assert "rl/collect" in counts[LEARNER]
    assert len(mine) <= 12, mine
    assert len(counts[LEARNER]) <= 6, counts[LEARNER]
    assert len(counts[ALL]) <= 30, counts[ALL]
