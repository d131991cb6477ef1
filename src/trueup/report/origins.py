"""Where the parameters of simulations come from, on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from trueup.world.fitted.origins import Origin, origin_lines


def print_origins(found: Sequence[Origin], console: Console) -> None:
    """Say where the parameters of the simulations come from, a line for each name."""
    console.print("parameters of the simulations (what is not named is the robot's own):")
    for line in origin_lines(found):
        console.print(f"  {line}", soft_wrap=True, highlight=False)
