"""`trueup play RUN`: watch a policy, our own or another's, as a film or live in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from trueup.core.outputs import OutFile


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
    command: tuple[float, ...] | None = None
    """Ask for this; walking: forward, sideways (m/s), turn (rad/s); default: as drawn (film), or zero (page)."""
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
    from contextlib import nullcontext

    from rich.console import Console

    from trueup.face import play
    from trueup.policy.foreign.layout import read_layout
    from trueup.report.progress import progress_bar

    console = Console()
    layout = None
    if verb.layout is not None:
        layout = read_layout(verb.layout, joint_names=verb.joints, base=verb.base)
    with progress_bar("filming", console) if verb.film is not None else nullcontext() as progress:
        film = play(
            verb.run,
            onnx=verb.onnx,
            layout=layout,
            task=verb.task,
            film=verb.film,
            seconds=verb.seconds,
            command=verb.command,
            width=verb.width,
            height=verb.height,
            azimuth=verb.azimuth,
            randomize=verb.randomize,
            seed=verb.seed,
            host=verb.host,
            port=verb.port,
            on_url=lambda url: console.print(f"page   {url}   (Ctrl-C ends)", soft_wrap=True),
            progress=progress,
        )
    if film is not None:
        console.print(f"film   {film}", soft_wrap=True)
    return 0
