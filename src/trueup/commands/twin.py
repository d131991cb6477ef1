"""`trueup twin serve|reveal|list`: a virtual robot with hidden physics behind the hardware interface."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class ServeVerb:
    """Run a twin: a process that behaves like a robot, with physics nobody tells you.

    In: a robot, a preset and a seed. Out: a UDP port that `--driver twin@HOST:PORT` talks to, until Ctrl-C.
    """

    robot: tyro.conf.Positional[str]
    """Built-in name, or your robot's folder or spec."""
    preset: str = "mild"
    """A shipped preset (`trueup twin list`) or a path to your own TOML."""
    seed: int = 0
    """Which twin of the preset."""
    params: Path | None = None
    """Folder of a calibration: what was fitted is drawn from its posterior, by the seed."""
    base: Annotated[Literal["fixed", "free"], tyro.conf.arg(help="held in the air, or on the ground")] = (
        "fixed"
    )
    port: int = 0
    """UDP port on this computer; 0 takes a free one."""
    rate: float = 200.0
    """Commands and states per second."""
    lockstep: bool = False
    """Time passes only with commands, as fast as they come."""


@dataclass(frozen=True, kw_only=True)
class RevealVerb:
    """Open the sealed truth of a twin that has run here, to score yourself.

    In: the twin's name (robot-preset-seed). Out: its hidden parameters as JSON. No stage of trueup reads them.
    """

    name: tyro.conf.Positional[str]
    """Such as go2-harmonic-7."""


@dataclass(frozen=True, kw_only=True)
class TwinsVerb:
    """List presets, and twins whose truth is sealed here.

    In: nothing. Out: names.
    """


TwinVerb = (
    Annotated[ServeVerb, tyro.conf.subcommand("serve")]
    | Annotated[RevealVerb, tyro.conf.subcommand("reveal")]
    | Annotated[TwinsVerb, tyro.conf.subcommand("list")]
)


def run(verb: ServeVerb | RevealVerb | TwinsVerb) -> int:
    """Serve, reveal or list."""
    from rich.console import Console

    console = Console()
    if isinstance(verb, ServeVerb):
        return _serve(verb, console)
    from trueup.twin.truth.seal import reveal, sealed_names

    if isinstance(verb, RevealVerb):
        console.print_json(json.dumps(reveal(verb.name)))
        return 0
    from trueup.twin.truth.preset import preset_names, read_preset

    for name in preset_names():
        console.print(f"{name:10} {read_preset(name).description}", soft_wrap=True)
    console.print(f"sealed here: {', '.join(sealed_names()) or 'none'}")
    return 0


def _serve(verb: ServeVerb, console: object) -> int:
    from rich.console import Console

    from trueup.robot.load import load_robot
    from trueup.twin.server import serve
    from trueup.twin.socket_server import ServeCfg, TwinServer

    assert isinstance(console, Console)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")

    def ready(server: TwinServer) -> None:
        host, port = server.address
        console.print(f"twin {server.twin.name} listens: --driver twin@{host}:{port}   (Ctrl-C ends it)")

    cfg = ServeCfg(
        robot=verb.robot,
        preset=verb.preset,
        seed=verb.seed,
        params=None if verb.params is None else str(verb.params),
        base=verb.base,
        port=verb.port,
        command_hz=verb.rate,
        lockstep=verb.lockstep,
    )
    serve(cfg, load_robot(verb.robot), ready)
    return 0
