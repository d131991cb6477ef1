"""Config of `trueup predictions`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class PredictionsVerb:
    """Score what `verify` predicted with what the robot then did: falls, velocity error, power.

    In: a workspace of `trueup loop`, or any folder with certificates and recordings of `trueup deploy`. Out: a table of
    every run on the last rung with the interval that was predicted, what was measured and whether it lies inside; and
    over all of them the share inside and the score of the predicted falls (Brier).
    """

    workspace: tyro.conf.Positional[Path]  # The folder.
    _: KW_ONLY
    robot: str | None = None  # Name or folder; default: the one that recordings name.
    json: bool = False  # Print one JSON object instead of tables.
