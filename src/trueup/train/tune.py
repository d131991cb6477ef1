"""Chooses the numbers of simulations and threads by measuring the task on this machine, before a run starts."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from trueup.core.machine import usable_cores
from trueup.rl.env import Env

_SIZES = (512, 1024, 2048)
_ENOUGH = 0.75  # of the best pace: with half as many simulations, about two thirds of the steps learn the same
_MEASURE_S = 0.4


def choose(make: Callable[[int, int], Env], nenv: int = 0, threads: int = 0) -> tuple[int, int]:
    """Try numbers of simulations and threads; one that is not 0 is taken as given.

    Takes the smallest number of simulations with nearly the best pace: with fewer, PPO learns more from each step;
    below 512 learning becomes unreliable.
    """
    sizes, counts = (nenv,) if nenv else _SIZES, (threads,) if threads else tuple(sorted({1, usable_cores()}))
    if len(sizes) == len(counts) == 1:
        return sizes[0], counts[0]
    paces = {(size, count): pace(make(size, count)) for size in sizes for count in counts}
    best = max(paces.values())
    size = min(size for (size, _), value in paces.items() if value >= _ENOUGH * best)
    return size, max(counts, key=lambda count: paces[size, count])


def pace(env: Env) -> float:
    """Control steps per second of all simulations together, with small random actions."""
    env.reset()
    rng = np.random.default_rng(0)
    actions = rng.normal(0.0, 0.3, (8, env.nenv, env.naction)).astype(np.float32)
    env.step(actions[0])
    start, steps = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < _MEASURE_S or steps == 0:
        env.step(actions[steps % len(actions)])
        steps += 1
    return steps * env.nenv / passed
