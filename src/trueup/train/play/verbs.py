"""`tu.play`, and the config that it shares with `trueup play`: a policy in a film or on a live page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from trueup.core.files import OutFileLike, PathLike
from trueup.core.verb_package import called_with

if TYPE_CHECKING:  # Python takes objects where the command line takes their files
    from trueup.policy.foreign.layout import Layout

    LayoutLike = str | Path | Layout
else:
    LayoutLike = Path


@dataclass(frozen=True)
class PlayVerb:
    """Watch what a run has learned, or a policy that was trained elsewhere.

    In: a run's folder, its exported policy's, or a bundle; or a network (--onnx) with its layout (--layout) and a task.
    Out: a film (--film), or a page with a live 3D view that is steered by sliders and keys and shows commanded and
    measured velocity.
    """

    run: tyro.conf.Positional[PathLike | None] = (
        None  # Folder of a run, of an exported policy (RUN/policy), or a bundle.
    )
    _: KW_ONLY
    onnx: PathLike | None = None  # Network of a policy that was trained elsewhere; needs --layout and --task.
    layout: LayoutLike | None = None  # Its layout: rl_sar's config.yaml or unitree_rl_lab's deploy.yaml.
    task: str | None = None  # Task whose world it is played in; of a bundle, in place of its own.
    robot: str | None = None  # Robot of a bundle, in place of its task's: a name or a folder.
    joints: tuple[str, ...] = ()  # Joint names in the SDK's order, for layouts that number joints only (deploy.yaml).
    base: PathLike | None = None  # rl_sar's base.yaml; default: beside the layout or one folder up.
    film: OutFileLike | None = None  # Write a film here (.mp4 or .gif) instead of opening the live view.
    width: int = 1280  # Of the film, in pixels.
    height: int = 720  # Of the film, in pixels.
    azimuth: float = 140.0
    """Heading of the film's camera from the robot's first one, degrees: 90 from its right, 180 from the front."""
    command: tuple[float, ...] | None = None
    """Command, held; walking: forward, sideways (m/s), turn (rad/s); default: as drawn (film), or zero (page)."""
    seconds: float | None = None
    """Length of the film (default 10), or time after which the live view ends (default: at Ctrl-C)."""
    randomize: bool = False  # Draw masses, friction, delays and so on as in training; default: the robot as it is.
    host: str = "127.0.0.1"  # Address the page is served at; 0.0.0.0 lets other computers connect.
    port: int = 8080  # Port the page is served at; the next free one if it is taken.
    seed: int = 0  # Of everything random.


def run(
    verb: PlayVerb, on_url: Callable[[str], None] = print, progress: Callable[[float], None] | None = None
) -> Path | None:
    """Watch the policy of a run, or an ONNX policy of others with its layout and a task.

    film      write a film of `seconds` (default 10) and return its path; None: serve a live page until Ctrl-C, or for
              `seconds`; its address is printed
    command   what to ask for throughout, in the columns of the goal's sliders; None: as the task draws it

    All options are the fields of `PlayVerb`, which says what they mean, and the flags of `trueup play`.
    """
    from trueup.policy.foreign.layout import Layout, read_layout
    from trueup.train.play.play import open_policy
    from trueup.train.play.show import film_policy
    from trueup.view.camera import CameraCfg

    layout = verb.layout
    if layout is not None and not isinstance(layout, Layout):
        layout = read_layout(layout, joint_names=verb.joints, base=verb.base)
    env, policy = open_policy(
        verb.run,
        onnx=verb.onnx,
        layout=layout,
        task=verb.task,
        robot=verb.robot,
        randomize=verb.randomize,
        seed=verb.seed,
    )
    if verb.film is None:
        from trueup.train.live.live import serve_live

        serve_live(
            env, policy, host=verb.host, port=verb.port, seconds=verb.seconds, command=verb.command, on_url=on_url
        )
        return None
    return film_policy(
        env,
        policy,
        Path(verb.film),
        seconds=verb.seconds or 10.0,
        width=verb.width,
        height=verb.height,
        camera=CameraCfg(azimuth=verb.azimuth),
        command=verb.command,
        progress=progress,
    )


play = called_with(PlayVerb, run)
