"""`trueup play RUN`: watch a policy, our own or another's, as a film or live in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from trueup.core.errors import TrueupError
from trueup.core.outputs import OutFile

if TYPE_CHECKING:
    from trueup.policy.runner import Policy
    from trueup.tasks.env import TaskEnv


@dataclass(frozen=True, kw_only=True)
class PlayVerb:
    """Watch what a run has learned, or a policy that was trained elsewhere.

    In: a run's folder, or its exported policy's; or a network (--onnx) with its written layout (--layout) and a task.
    Out: a film (--film), or a page with a live 3D view that is steered by sliders and keys and shows the velocity that
    was asked for and the one that comes out.
    """

    run: tyro.conf.Positional[Path | None] = None
    """Folder of a run, or of an exported policy (RUN/policy)."""
    onnx: Path | None = None
    """Network of a policy that was trained elsewhere; needs --layout and --task."""
    layout: Path | None = None
    """Its layout: rl_sar's config.yaml or unitree_rl_lab's deploy.yaml."""
    task: str | None = None
    """Task whose world it is played in."""
    joints: tuple[str, ...] = ()
    """Joint names in the SDK's order, for layouts that number joints only (deploy.yaml)."""
    base: Path | None = None
    """rl_sar's base.yaml; default: beside the layout or one folder up."""
    film: OutFile | None = None
    """Write a film here (.mp4 or .gif) instead of opening the live view."""
    width: int = 640
    """Of the film, in pixels."""
    height: int = 480
    """Of the film, in pixels."""
    azimuth: float = 140.0
    """Where the film's camera looks, degrees from the robot's first heading: 90 from its right, 180 into its face."""
    command: tuple[float, float, float] | None = None
    """Ask for this velocity: forward, sideways (m/s), turn (rad/s); default: as drawn (film), or zero (page)."""
    seconds: float | None = None
    """Length of the film (default 10), or time after which the live view ends (default: at Ctrl-C)."""
    randomize: bool = False
    """Draw masses, friction, delays and so on as in training; default: the robot as it is."""
    host: str = "127.0.0.1"
    """Address the page is served at; 0.0.0.0 lets other computers look on."""
    port: int = 8080
    """Port the page is served at; the next free one if it is taken."""
    seed: int = 0
    """Of everything random."""


def run(verb: PlayVerb) -> int:
    """Film, or serve until Ctrl-C."""
    import time

    from rich.console import Console

    from trueup.report.progress import progress_bar
    from trueup.train.play.show import film_policy
    from trueup.train.stop import stop_on_signal
    from trueup.view.camera import CameraCfg

    console = Console()
    env, policy = _open(verb)
    if verb.film is not None:
        with progress_bar("filming", console) as progress:
            film_policy(
                env,
                policy,
                verb.film,
                seconds=verb.seconds or 10.0,
                width=verb.width,
                height=verb.height,
                camera=CameraCfg(azimuth=verb.azimuth),
                command=verb.command,
                progress=progress,
            )
        console.print(f"film   {verb.film}", soft_wrap=True)
        return 0
    from trueup.train.live.live import LiveView

    view = LiveView(env, policy, host=verb.host, port=verb.port)
    if verb.command is not None:
        view.ask(verb.command)
    console.print(f"page   {view.url}   (Ctrl-C ends)", soft_wrap=True)
    end = None if verb.seconds is None else time.monotonic() + verb.seconds
    try:
        with stop_on_signal() as stop:
            view.run(lambda: stop.requested or (end is not None and time.monotonic() > end))
    finally:
        view.close()
    return 0


def _open(verb: PlayVerb) -> tuple[TaskEnv, Policy]:
    from trueup.policy.foreign.layout import read_layout
    from trueup.tasks.env import EnvCfg
    from trueup.train.play.play import open_run
    from trueup.train.play.witness import open_witness

    if verb.run is not None and verb.onnx is None:
        return open_run(verb.run, randomize=verb.randomize, seed=verb.seed)
    if verb.run is not None or verb.onnx is None or verb.layout is None or verb.task is None:
        raise TrueupError("play takes a run's folder, or --onnx with --layout and --task")
    layout = read_layout(verb.layout, joint_names=verb.joints, base=verb.base)
    cfg = EnvCfg(nenv=1, threads=1, seed=verb.seed, randomize=verb.randomize, pushes=False, stagger=False)
    return open_witness(verb.onnx, layout, verb.task, cfg)
