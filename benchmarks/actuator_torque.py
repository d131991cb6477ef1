"""Rungs that learn from measured torque: part `supervised` of `actuators.py`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from actuator_logs import twin_logs
from parts import ACTUATORS, table

from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.nets.supervised import FORMS, train_supervised
from trueup.data.log import Log
from trueup.robot.load import Robot, load_robot

if TYPE_CHECKING:
    from actuators import BenchCfg

Numbers = dict[str, object]
SENSOR = Path(__file__).resolve().parent / "harmonic_torque_sensor.toml"
RUNGS = ("pd", "fir", "net", "net_long")


def supervised_part(cfg: BenchCfg) -> tuple[Numbers, str]:
    """Torque errors on unseen motion, of twins with a torque sensor and of twins that estimate it from currents."""
    presets = {"sensor": str(SENSOR), "estimate": "harmonic"}

    def one(key: str) -> Numbers:
        kind, seed = key.split()
        folder = cfg.runs / ("harmonic" if kind == "estimate" else "torque")
        robot = load_robot("go2")
        logs = twin_logs(robot, presets[kind], int(seed), folder.with_name(f"{folder.name}-{seed}"), gain=False)
        return {name: _error(robot, name, logs.train, logs.unseen) for name in RUNGS}

    keys = [f"sensor {seed}" for seed in cfg.seeds] + [f"estimate {cfg.seeds[0]}"]
    runs = ACTUATORS.each("supervised", keys, one, fresh=cfg.fresh)
    rows = [
        (
            rung_named(name).title,
            *(f"{run[name]['torque']:.4f} ({run[name]['torque'] / run['pd']['torque']:.2f})" for run in runs.values()),
            f"{np.median([run[name]['cpu_s'] for run in runs.values()]):.0f}",
        )
        for name in RUNGS
    ]
    mine = [run for key, run in runs.items() if key.startswith("sensor")]
    ratio = {n: float(np.median([run[n]["torque"] / run["pd"]["torque"] for run in mine])) for n in RUNGS[1:]}
    text = f"""## Torque, where it is measured

go2 twins `harmonic` in the air, fitted to multisine, random holds and chirp, judged on steps and a sine ladder. Root
mean square error of torque at measured states, mean over joints, N m, and over that of ideal PD (asked of the net:
below 0.33). `sensor`: a torque sensor with a noise of 0.02 % of the limit at every joint; `estimate`: the preset as it
is, whose drives estimate torque from currents with a noise of 0.5 % of the limit, below which no model can get.

{table(("rung", *runs, "CPU s"), rows)}

The motor's torque is a linear servo behind a delay and limits that these motions do not reach: a linear filter has
little left for a net to find.
"""
    return {"net_over_pd_torque": ratio["net"], "torque_over_pd": ratio}, text


def _error(robot: Robot, name: str, train: Sequence[Log], unseen: Sequence[Log]) -> Numbers:
    rung, began = rung_named(name), time.process_time()
    net = None
    if rung.kind == "torque":
        net = train_supervised(robot, train, None, replace(FORMS[rung.net], seed=0))  # type: ignore[index]
    cpu = time.process_time() - began
    return {"torque": Actuator(rung=rung, net=net).torque_error(robot, unseen), "cpu_s": cpu}
