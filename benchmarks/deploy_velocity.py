"""The same policy, twins and commands through the evaluation loop and through `deploy`: is the velocity error the same?

    python benchmarks/deploy_velocity.py --bundles walk.bundle theirs.bundle

A go2 on twins of hidden physics, an episode on each. The evaluation loop is that of `evaluate` and `verify`, read past
the driver. Deploy is all of it: ramp, controller, session, motor guard in its own process at 200 Hz, wire, twin in
lock-step. Both are scored by the twin's true motion, in the episode's steps before a fall. The commands are the task's
own, the same numbers at the same control step. What differs is the start (the loop's robot is let go in its default
pose, deploy's has stood for a second after its ramp), the noise of the sensors, and whatever the guard limits. So the
first second is left out, and errors over the whole episode stand in deploy.json.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import tempfile
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from faults.hour import full_guard
from faults.run import in_process
from numpy.typing import NDArray
from on_twin import TwinWorld
from parts import DEPLOY, Numbers, table
from scipy.stats import t as student

from trueup.core.arrays import FloatArray
from trueup.deploy.control.controller import Controller
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.session.session import DeploySession, DeploySessionCfg
from trueup.hardware.driver import Command, RobotState
from trueup.hardware.guard.driver import GuardDriver
from trueup.hardware.twin_cfg import ServeCfg, TwinCfg
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle
from trueup.rl.env import Obs
from trueup.robot.load import load_robot
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.evaluation.evaluate import evaluate
from trueup.tasks.load import load_task
from trueup.twin.firmware import Twin
from trueup.twin.socket_server import TwinServer

ROBOT, GUARD_HZ = "go2", 200.0
SETTLED_STEPS = 50
ERRORS = {"velocity": "m/s", "turn": "rad/s"}


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    bundles: tuple[Path, ...]
    presets: tuple[str, ...] = ("ideal", "mild", "harmonic", "worn")
    seeds: int = 5
    """Twins of each preset."""
    seconds: float = 20.0
    fresh: bool = False


def main(cfg: BenchCfg) -> None:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # sealed truths of a benchmark are nobody's business
    bundles = {path.stem: load_bundle(path) for path in cfg.bundles}
    keys = [f"{name} {preset}-{seed}" for name in bundles for preset in cfg.presets for seed in range(cfg.seeds)]

    def measure(key: str) -> Numbers:
        name, twin = key.split()
        preset, seed = twin.rsplit("-", 1)
        return episode(bundles[name], preset, int(seed), cfg.seconds)

    DEPLOY.each("velocity", keys, measure, fresh=cfg.fresh)
    numbers, text = section(DEPLOY.load()["runs"]["velocity"])
    shown = " ".join(f"{path.stem}.bundle" for path in cfg.bundles)
    DEPLOY.merge("velocity", numbers, text, f"python benchmarks/deploy_velocity.py --bundles {shown}")


def episode(bundle: PolicyBundle, preset: str, seed: int, seconds: float) -> Numbers:
    """One twin, both ways: mean errors before a fall."""
    commands, loop = evaluated(bundle, preset, seed, seconds)
    deployed = walked(bundle, preset, seed, commands)
    return {"preset": preset, "seed": seed, "loop": loop, "deploy": deployed}


# --- the evaluation loop ---
def evaluated(bundle: PolicyBundle, preset: str, seed: int, seconds: float) -> tuple[FloatArray, dict[str, Any]]:
    """The commands that the task drew, and how the policy followed them."""
    spec, task = bundle.passport.policy, load_task(bundle.passport.policy.task)
    twin = Twin(load_robot(ROBOT), TwinCfg(preset=preset, seed=seed, base="free", command_hz=spec.control_hz))
    goal = build(task, EnvCfg(nenv=1, threads=1, seed=3000 + seed)).goal
    policy = bundle.runner(1)
    played = evaluate(
        TwinWorld([twin], spec), lambda actor: policy(Obs(actor, actor, actor[:, :0])), spec, task, goal, seconds
    )
    up = played.standing[:, 0]
    found = {name: played.metrics[f"{name}_error"][:, 0] for name in ERRORS}
    means = {key: value for name in ERRORS for key, value in figures(name, found[name], up).items()}
    return played.commands[:, 0].astype(np.float64), {**means, "fell": bool(not up[-1]), "steps": int(up.sum())}


def figures(name: str, errors: FloatArray, up: NDArray[np.bool_]) -> dict[str, float]:
    """Mean error before a fall, from the first second on and over the whole episode."""
    later = up & (np.arange(len(up)) >= SETTLED_STEPS)
    return {name: float(errors[later].mean()), f"{name}_whole": float(errors[up].mean())}


# --- deploy ---
class Script:
    """An operator who asks for the same commands at the same steps; looks on as the session's `controls` and `live`."""

    stop_requested = False

    def __init__(self, commands: FloatArray) -> None:
        self._commands = commands
        self.times: list[float] = []  # robot's clock at each step of the policy

    def poll(self, goal: AskedGoal) -> str:
        goal._values = self._commands[min(len(self.times), len(self._commands) - 1)].copy()
        return ""

    def show(self, time_s: float, state: RobotState, command: Command, goal: AskedGoal, phase: str) -> None:
        if phase == "policy":
            self.times.append(state.time_s)

    def close(self) -> None:
        return


def walked(bundle: PolicyBundle, preset: str, seed: int, commands: FloatArray) -> dict[str, Any]:
    """The same through ramp, controller, session, guard and wire."""
    robot, serve = (
        load_robot(ROBOT),
        ServeCfg(preset=preset, seed=seed, base="free", command_hz=GUARD_HZ, lockstep=True),
    )
    controller, script = Controller(bundle, robot.spec.joint_names), Script(commands)
    hz = controller.control_hz
    with in_process(serve_truth, serve) as (pipe, port):
        driver = GuardDriver(f"twin@127.0.0.1:{port}", robot, full_guard(bundle), control_hz=hz, lockstep=True)
        with driver:
            goal = AskedGoal(controller.passport.goal)
            session = DeploySessionCfg(seconds=len(commands) / hz)
            outcome = DeploySession(controller, driver, goal, session, controls=[script], live=script).run()
        pipe.send("stop")
        truth: FloatArray = pipe.recv()  # (periods, 5): time, vx, vy, turn, tilt
    after = np.searchsorted(truth[:, 0], np.array(script.times) + 1.0 / hz - 1e-6)
    steps = truth[np.minimum(after, len(truth) - 1)]
    asked = commands[: len(steps)]
    up = np.cumsum(steps[:, 4] > 1.0) == 0
    velocity, turn = np.hypot(*(steps[:, 1:3] - asked[:, :2]).T), np.abs(steps[:, 3] - asked[:, 2])
    clips = dict(driver.summary.status.clips) if driver.summary is not None else {}
    return {
        **figures("velocity", velocity, up),
        **figures("turn", turn, up),
        "fell": bool(not up.all() or outcome.ended == "tripped"),
        "steps": int(up.sum()),
        "ended": outcome.ended,
        "reason": outcome.reason,
        "clips": clips,
    }


def serve_truth(pipe: Connection, cfg: ServeCfg) -> None:
    """The twin's process: serves in lock-step and notes its true motion after every period."""
    twin = Twin(load_robot(ROBOT), cfg)
    server, period, rows = TwinServer(twin, cfg), twin.period, []
    body, data = twin.plant.data.body(twin.robot.spec.base.body), twin.plant.data

    def noted() -> None:
        period()
        rotation = body.xmat.reshape(3, 3)
        speed = rotation.T @ data.qvel[:3]
        rows.append(
            (twin.time_s, speed[0], speed[1], data.qvel[5], float(np.arccos(np.clip(rotation[2, 2], -1.0, 1.0))))
        )

    def answer() -> bool:
        return not (pipe.poll(0.0) and pipe.recv() == "stop")

    twin.period = noted  # type: ignore[method-assign]
    pipe.send(server.address[1])
    server._socket.settimeout(0.05)
    while answer():
        try:
            server._receive(None)
        except TimeoutError:
            continue
    server.close()
    pipe.send(np.array(rows))


# --- the page ---
def section(rows: dict[str, Any]) -> tuple[dict[str, object], str]:
    """Means over twins, and the mean of the differences with its 95 % interval."""
    names = list(dict.fromkeys(key.split()[0] for key in rows))
    numbers: dict[str, object] = {}
    lines: list[tuple[object, ...]] = []
    for name in names:
        mine = [row for key, row in rows.items() if key.split()[0] == name]
        presets = list(dict.fromkeys(row["preset"] for row in mine))
        for label in (*presets, "all"):
            group = [row for row in mine if label in (row["preset"], "all")]
            falls = "{} / {} of {}".format(
                *(sum(row[way]["fell"] for row in group) for way in ("loop", "deploy")), len(group)
            )
            cells: list[object] = [name, label, falls]
            for error in ERRORS:
                loop, deploy = (np.array([row[way][error] for row in group]) for way in ("loop", "deploy"))
                middle, half = interval(deploy - loop)
                own = f" +- {interval(loop)[1]:.3f}" if label == "all" else ""
                spread = f" +- {half:.3f}" if np.isfinite(half) else ""
                cells += [f"{loop.mean():.3f}{own}", f"{deploy.mean():.3f}", f"{middle:+.3f}{spread}"]
                if label == "all":
                    numbers |= {
                        f"{error}_error_loop_{name}": round(float(loop.mean()), 4),
                        f"{error}_error_deploy_{name}": round(float(deploy.mean()), 4),
                        f"{error}_error_difference_{name}": [round(middle - half, 4), round(middle + half, 4)],
                    }
            lines.append(tuple(cells))
    compared = [(f"{error} error, loop ({unit})", "deploy", "difference") for error, unit in ERRORS.items()]
    head = ("policy", "twins", "falls, loop / deploy", *(cell for cells in compared for cell in cells))
    ended = [f"{key}: {row['deploy']['reason']}" for key, row in rows.items() if row["deploy"]["ended"] == "tripped"]
    about = " ".join(" ".join(__doc__.split("\n\n")[2:]).split())
    stopped = f"Stopped by a guard: {'; '.join(ended)}." if ended else "No guard stopped an episode."
    text = [
        "## Velocity error, evaluation loop and deploy",
        f"{about} The difference is paired by twin, with its 95 % interval (t).",
        table(head, lines),
        stopped,
    ]
    return numbers, "\n\n".join(text)


def interval(values: FloatArray) -> tuple[float, float]:
    """Mean, and half its 95 % interval."""
    half = (
        student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    )
    return float(values.mean()), float(half)


if __name__ == "__main__":
    main(tyro.cli(BenchCfg, args=sys.argv[1:]))
