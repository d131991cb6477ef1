"""Films of a workspace: the recorded motion beside both simulators, the policy in simulation, and the robot's run.

A film is named by the hash of the stage it shows, so that it is rendered once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.data.mcap.read import read_mcap
from trueup.loop.compare import rows_log
from trueup.loop.context import Context
from trueup.loop.stages.act import WALKS
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg, compile_model, default_qpos, joint_index

_SIZE = {"width": 480, "height": 320, "fps": 25.0}
_SHOWN_S = 5.0
_FILMED = 2  # runs of the robot in a round
Film = tuple[Path, str]


def recorded_films(loop: Context, round_: int) -> list[Film]:
    """The log's motion as measured, and simulated before and after the fit."""
    from trueup.world.fitted.calibration import read_calibration
    from trueup.world.replay.replay import replay

    made = loop.workspace.manifest(round_, "record")
    if made is None:
        return []
    log = read_mcap(loop.logs(round_)[-1])
    log = log.window(0, min(len(log), int(_SHOWN_S * _rate(log.time))))
    shown = {"recorded": lambda: log["joint_pos"], "before": lambda: replay(loop.robot, log).joint_pos[0]}
    captions = {"recorded": "The robot, as recorded.", "before": "The model as it came, under the same commands."}
    fitted = loop.workspace.manifest(round_, "calibrate")
    if fitted is not None:
        fit = read_calibration(loop.fit(round_))
        shown["after"] = lambda: replay(loop.robot, log, prepare=fit.apply).joint_pos[0]
        captions["after"] = "The calibrated simulator, under the same commands."
    out = []
    for name, joints in shown.items():
        path = _path(loop, f"{name}-{round_}", (fitted if name == "after" and fitted else made).hash)
        out += _made(path, captions[name], partial(_film_joints, loop.robot, joints, _rate(log.time)))
    return out


def policy_film(loop: Context, round_: int) -> list[Film]:
    """The policy in the simulator it was trained in."""
    made = loop.workspace.manifest(round_, "train")
    if made is None:
        return []

    def draw(path: Path) -> None:
        from trueup.train.play.play import open_run
        from trueup.train.play.show import film_policy

        env, policy = open_run(loop.folder(round_, "train") / "run")
        film_policy(env, policy, path, seconds=_SHOWN_S, width=640, height=400)

    return _made(_path(loop, f"policy-{round_}", made.hash), "The policy in its simulator.", draw)


def robot_films(loop: Context, round_: int) -> list[Film]:
    """The first runs on the robot, from its joints, its IMU and leg odometry."""
    made = loop.workspace.manifest(round_, "deploy")
    if made is None or not loop.is_legged:
        return []
    out = []
    for rows in sorted(loop.folder(round_, "deploy").glob("full-*/policy.rows"))[:_FILMED]:
        name = rows.parent.name
        path = _path(loop, f"robot-{name}-{round_}", made.hash)
        walk = WALKS[int(name.removeprefix("full-")) - 1] if loop.walks else ()
        asked = f" asked for {', '.join(walk)}" if walk else ""
        out += _made(path, f"The robot{asked}, drawn from its own sensors.", partial(_film_rows, loop.robot, rows))
    return out


def _made(path: Path, caption: str, draw: Callable[[Path], object]) -> list[Film]:
    """The film if it exists or can be rendered; without ffmpeg or OpenGL the page has none."""
    try:
        if not path.exists():
            draw(path)
    except TrueupError as error:
        path.with_suffix(".txt").parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".txt").write_text(f"{error}\n")
        return []
    return [(path, caption)]


def _path(loop: Context, name: str, hash_: str) -> Path:
    return loop.workspace.path / "films" / f"{name}-{hash_[:10]}.mp4"


def _rate(time: NDArray[np.float64]) -> float:
    return 1.0 / float(np.median(np.diff(time)))


def _film_joints(robot: Robot, joints: Callable[[], NDArray[np.float64]], rate_hz: float, path: Path) -> None:
    """Joints over time, the base held."""
    from trueup.view.draw import visual_model
    from trueup.view.film import film

    cfg = ModelCfg(base="fixed")
    plain, model = compile_model(robot, cfg), visual_model(robot, cfg)
    rows = joints()[: int(_SHOWN_S * rate_hz)]
    qpos = np.tile(default_qpos(plain, robot), (len(rows), 1))
    qpos[:, joint_index(plain, robot).qpos] = rows
    film(model, qpos, path, sample_hz=rate_hz, **_SIZE)  # type: ignore[arg-type]


def _film_rows(robot: Robot, rows: Path, path: Path) -> None:
    from trueup.deploy.session.recording import read_rows
    from trueup.view.draw import visual_model
    from trueup.view.film import film
    from trueup.world.odometry import leg_odometry

    found = leg_odometry(robot, rows_log(read_rows(rows)))
    film(visual_model(robot, ModelCfg(base="free")), found.qpos, path, sample_hz=_rate(found.time), **_SIZE)  # type: ignore[arg-type]
