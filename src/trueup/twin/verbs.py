"""`trueup twin serve|reveal|list`: configs, and functions that only the command line calls (no stage knows a twin)."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field, replace

import tyro
from rich.console import Console

from trueup.hardware.twin_cfg import ServeCfg


@dataclass(frozen=True, kw_only=True)
class ServeVerb:
    """Run a twin: a process that behaves like a robot, with hidden physics.

    In: a robot, a preset and a seed. Out: a UDP port that `--driver twin@HOST:PORT` talks to, until Ctrl-C; or, with
    --speak, the protocol of a vendor on --place, which that vendor's driver talks to.
    """

    robot: tyro.conf.Positional[str]
    """Built-in name, or your robot's folder or spec; - : read the config from standard input, as drivers do."""
    cfg: ServeCfg = field(default_factory=ServeCfg)


def run_serve(verb: ServeVerb) -> int:
    """Serve until the end of the process."""
    from trueup.robot.load import load_robot
    from trueup.twin.real_time import ServedTwin
    from trueup.twin.server import serve, serve_parent

    if verb.robot == "-":
        return serve_parent()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")

    def ready(server: ServedTwin) -> None:
        line = f"twin {server.twin.name} listens: --driver {server.reference}   (Ctrl-C ends it)"
        Console().print(line, soft_wrap=True)

    cfg = verb.cfg
    if cfg.speak == "unitree" and cfg.command_hz == ServeCfg().command_hz:
        cfg = replace(cfg, command_hz=500.0)  # as the robot reports
    serve(cfg, load_robot(verb.robot), ready)
    return 0


@dataclass(frozen=True, kw_only=True)
class RevealVerb:
    """Open the sealed truth of a twin that has run here, to score yourself.

    In: the twin's name (robot-preset-seed). Out: its hidden parameters as JSON. No stage of trueup reads them.
    """

    name: tyro.conf.Positional[str]  # Such as go2-harmonic-7.


def reveal_twin(name: str) -> dict[str, object]:
    """The hidden truth of a twin that has run here, by its name: to score yourself."""
    from trueup.twin.truth.seal import reveal

    return reveal(name)


def run_reveal(verb: RevealVerb) -> int:
    """Print the truth."""
    from trueup.twin.truth.seal import reveal

    Console().print_json(json.dumps(reveal(verb.name)))
    return 0


@dataclass(frozen=True, kw_only=True)
class TwinsVerb:
    """List presets, and twins whose truth is sealed here.

    In: nothing. Out: names.
    """


def run_list(verb: TwinsVerb) -> int:
    """Print names and descriptions."""
    from trueup.twin.truth.preset import preset_names, read_preset
    from trueup.twin.truth.seal import sealed_names

    console = Console()
    for name in preset_names():
        console.print(f"{name:10} {read_preset(name).description}", soft_wrap=True)
    console.print(f"sealed here: {', '.join(sealed_names()) or 'none'}")
    return 0
