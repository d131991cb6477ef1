"""go2 policies from four simulators on one hidden twin: part `policies` of `actuators.py`.

The twin is recorded in the air under the task's gains; `pace` and the UAN are fitted to that and to nothing else. Then
one policy is trained in each simulator, and all walk on the twin itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from actuator_logs import twin_logs
from on_twin import walk_on_twins
from parts import ACTUATORS, table

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.ladder import run_ladder
from trueup.policy.mlp import PolicySpec
from trueup.policy.runner import PolicyRunner
from trueup.robot.load import Robot, load_robot
from trueup.tasks.build import with_servo
from trueup.tasks.env import EnvCfg
from trueup.tasks.load import load_task, make_env
from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.folder import RunFolder
from trueup.train.train import assess_run, train

if TYPE_CHECKING:
    from actuators import BenchCfg

Numbers = dict[str, object]
TASK, PRESET, EPISODES = "go2-velocity", "harmonic", 50
SIMULATORS = ("nominal", "randomised", "pace", "uan")


def policies_part(cfg: BenchCfg) -> tuple[Numbers, str]:
    """Train, or go on with what is there, then walk."""
    seed = cfg.seeds[0]

    def one(key: str) -> Numbers:
        twin, name = key.split()
        folder = cfg.runs / f"policies-{twin}"
        _fits(int(twin), folder)
        run = _trained(_run_cfg(name, folder), folder / name, cfg.steps)
        home = assess_run(run)
        found = walk_on_twins(
            lambda n: PolicyRunner(run.newest_policy(), n), _policy_spec(), PRESET, [int(twin)] * EPISODES
        )
        facts = run.newest().facts
        return {
            "error": found.error,
            "falls": found.falls,
            "power": found.power,
            "home_error": home.error,
            "home_falls": home.falls,
            "steps": facts["steps"],
        }

    runs = ACTUATORS.each("policies", [f"{seed} {name}" for name in SIMULATORS], one, fresh=cfg.fresh)
    rows = [
        (
            key.split()[1],
            f"{run['error']:.3f}",
            f"{run['falls']} of {EPISODES}",
            f"{run['power']:.0f}",
            f"{run['home_error']:.3f}",
            run["home_falls"],
        )
        for key, run in runs.items()
    ]
    head = ("trained in", "error on the twin, m/s", "falls", "power, W", "error at home, m/s", "falls at home")
    text = f"""## Policies

`{TASK}`, {cfg.steps / 1e6:g} M control steps of training in each simulator (nominal: the robot's own model, nothing
drawn; randomised: the task's ranges; `pace`: the same, but what a calibration to 60 s of the twin in the air has
identified is drawn from its posterior; UAN: the task's ranges around the net that was fitted to these 60 s), then
{EPISODES} episodes of 20 s with other commands on the twin `{PRESET}`, seed {seed}. Error of the base's velocity until
a fall; mechanical power; at home: in the simulator of its training, 100 episodes.

{table(head, rows)}
"""
    return {"policies": {key.split()[1]: run for key, run in runs.items()}}, text


def task_robot() -> Robot:
    """The robot with the task's gains."""
    task = load_task(TASK)
    return with_servo(load_robot(task.robot), task.servo)


def _fits(twin: int, folder: Path) -> None:
    """The ladder's rungs for this twin, under folder/ladder."""
    robot = task_robot()
    logs = twin_logs(robot, PRESET, twin, folder, gain=False)
    cfg = LadderCfg(rungs="pace,uan")
    run_ladder(robot, logs.train, cfg, holdout=logs.unseen, folder=folder / "ladder", resume=True)


def _run_cfg(name: str, folder: Path) -> RunCfg:
    rungs = folder / "ladder" / "rungs"
    plain = RunCfg(task=TASK, nenv=512, learner=default_learner(TASK))
    return {
        "nominal": replace(plain, randomize=False),
        "randomised": plain,
        "pace": replace(plain, params=str(rungs / "pace")),
        "uan": replace(plain, actuator=str(rungs / "uan")),
    }[name]


def _trained(cfg: RunCfg, path: Path, steps: int) -> RunFolder:
    folder = RunFolder(path)
    train(cfg, path, Budget(steps=steps, save_s=60.0), resume=(path / "config.json").exists())
    return folder


def _policy_spec() -> PolicySpec:
    return make_env(load_task(TASK), EnvCfg(nenv=1, threads=1)).policy_spec()
