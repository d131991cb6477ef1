"""`trueup twin serve|reveal|list`: a virtual robot with hidden physics behind the hardware interface."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import tyro

from trueup.hardware.twin_cfg import ServeCfg

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class ServeVerb:
    """Run a twin: a process that behaves like a robot, with physics nobody tells you.

    In: a robot, a preset and a seed. Out: a UDP port that `--driver twin@HOST:PORT` talks to, until Ctrl-C.
    """

    robot: tyro.conf.Positional[str]
    """Built-in name, or your robot's folder or spec; - : a driver's order on standard input."""
    cfg: ServeCfg = field(default_factory=ServeCfg)


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


def _serve(verb: ServeVerb, console: Console) -> int:
    from trueup.robot.load import load_robot
    from trueup.twin.server import serve, serve_parent
    from trueup.twin.socket_server import TwinServer

    if verb.robot == "-":
        return serve_parent()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")

    def ready(server: TwinServer) -> None:
        host, port = server.address
        console.print(f"twin {server.twin.name} listens: --driver twin@{host}:{port}   (Ctrl-C ends it)")

    serve(verb.cfg, load_robot(verb.robot), ready)
    return 0
