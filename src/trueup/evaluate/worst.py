"""The worst trial of a scenario, kept as a film and as a log."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.mcap.write import write_log
from trueup.evaluate.trials.record import TrialRecorder
from trueup.evaluate.trials.run import Trials
from trueup.view.camera import CameraCfg, turned
from trueup.view.film import film, visual_model

_SHOWN_S, _AFTER_S = 4.0, 0.6  # of a film; after a fall
_SIZE = (640, 360)
_FPS = 20.0


def worst_trial(trials: Trials) -> int:
    """The trial that fell first; without falls the one that failed, or did not, with the largest error."""
    seconds = trials.table["seconds"]
    error = np.nan_to_num(trials.table["error"], nan=0.0)
    fell = np.array([why in ("fell", "diverged") for why in trials.failed])
    rank = np.where(fell, 2e6 - seconds, np.where(trials.success, error, 1e6 + error))
    return int(np.argmax(rank))


def film_trial(record: TrialRecorder, row: int, standing_s: float, path: Path) -> Path:
    """Film the last seconds of a trial, until shortly after a fall."""
    qpos, dt = record.qpos(row), record.world.control_dt
    good = np.isfinite(qpos).all(axis=1)
    end = min(len(qpos), round((standing_s + _AFTER_S) / dt) + 1, int(np.argmin(good)) if not good.all() else len(qpos))
    shown: FloatArray = qpos[max(0, end - round(_SHOWN_S / dt)) : max(end, 1)]
    sim = record.world.sim
    camera = CameraCfg(azimuth=75.0, elevation=-15.0)  # from its right side: stairs hide nothing
    if sim.free_base:
        camera = turned(camera, shown[0, sim.base_qpos + 3 : sim.base_qpos + 7])
    return film(
        visual_model(sim.scene, sim.cfg.model),
        shown,
        path,
        sample_hz=1.0 / dt,
        fps=_FPS,
        width=_SIZE[0],
        height=_SIZE[1],
        camera=camera,
    )


def log_trial(record: TrialRecorder, row: int, path: Path, meta: dict[str, object]) -> Path:
    """Write a trial as MCAP."""
    return write_log(record.log(row, meta), path)
