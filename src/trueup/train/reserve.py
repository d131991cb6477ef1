"""Time reserved at the end of a run with --minutes for its film, assessment and page.

Costs are measured at the start by doing a small share of each. Machines change while a run lasts (other work, heat):
the trainer scales the reserve by its slowdown against its best pace.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError
from trueup.tasks.env import TaskEnv
from trueup.view.film import film, visual_model

FILM_S = 4.0
SHORTEST_FILM_S = 1.0
_FPS = 30.0
_PAGE_CPU_S = 4.0  # measured; mostly the import of the plotting library
_SPARE = 1.25  # of everything: the measurement is a single noisy sample
_STEPS, _FRAMES = 8, 4
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Reserve:
    """Seconds that each part takes; film_s is that of a film's `FILM_S`, of which `setup_s` come in any case."""

    assess_s: float = 0.0
    film_s: float = 0.0
    setup_s: float = 0.0
    page_s: float = 0.0

    @property
    def total_s(self) -> float:
        """With a margin."""
        return _SPARE * (self.assess_s + self.film_s + self.page_s)

    def film_length(self, left_s: float) -> float:
        """Length of the film that fits into the time left before assessment and page, s; 0: none fits."""
        room = left_s - _SPARE * (self.assess_s + self.page_s) - self.setup_s
        rate = (self.film_s - self.setup_s) / FILM_S
        return FILM_S if rate <= 0.0 or room >= rate * FILM_S else max(SHORTEST_FILM_S, room / rate)


def measured_reserve(make_env: Callable[[int], TaskEnv], episodes: int, *, films: bool, assesses: bool) -> Reserve:
    """Do a share of each part; `make_env` takes a number of simulations."""
    wall, cpu = time.perf_counter(), time.process_time()
    env, build_s = _timed(lambda: make_env(1))
    step_s = _step_s(env)
    assess_s = film_s = setup_s = 0.0
    steps = env.task.rates.episode_s / env.control_dt
    if assesses:
        many, many_s = _timed(lambda: make_env(episodes))
        assess_s = many_s + steps * _step_s(many) + build_s + steps * step_s
    if films:
        setup_s, frame_s = _film_costs(env)
        setup_s += build_s
        film_s = setup_s + FILM_S * (_FPS * frame_s + step_s / env.control_dt)
    slower = (time.perf_counter() - wall) / max(time.process_time() - cpu, 1e-9)
    return Reserve(assess_s=assess_s, film_s=film_s, setup_s=setup_s, page_s=_PAGE_CPU_S * max(1.0, slower))


def _timed(make: Callable[[], TaskEnv]) -> tuple[TaskEnv, float]:
    began = time.perf_counter()
    made = make()
    return made, time.perf_counter() - began


def _step_s(env: TaskEnv) -> float:
    """Seconds of a control step of all rows; the first ones warm up."""
    env.reset()
    action = np.zeros((env.nenv, env.naction), np.float32)
    env.step(action)
    began = time.perf_counter()
    for _ in range(_STEPS):
        env.step(action)
    return (time.perf_counter() - began) / _STEPS


def _film_costs(env: TaskEnv) -> tuple[float, float]:
    """Seconds of a film's beginning and end, and of a frame; (0, 0) where films cannot be made."""
    qpos, at = np.tile(env.sim.qpos[0], (_FRAMES, 1)), []
    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as place:
            model = visual_model(env.sim.scene, env.sim.cfg.model)
            film(
                model,
                qpos,
                Path(place) / "probe.mp4",
                sample_hz=_FPS,
                fps=_FPS,
                progress=lambda _: at.append(time.perf_counter()),
            )
    except TrueupError as error:
        _LOG.warning("no film will be made: %s", error)
        return 0.0, 0.0
    frame_s = (at[-1] - at[0]) / max(1, len(at) - 1)
    return time.perf_counter() - began - len(at) * frame_s, frame_s
