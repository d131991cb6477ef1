"""The ladder on recordings of real robots: part `real` of `actuators.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parts import ACTUATORS

from trueup.calibrate.actuator.climb import climb
from trueup.calibrate.actuator.ladder import Ladder, LadderCfg
from trueup.data.files import read_log
from trueup.robot.load import load_robot

if TYPE_CHECKING:
    from actuators import BenchCfg

Numbers = dict[str, object]


def real_part(cfg: BenchCfg) -> tuple[Numbers, str]:
    """Both robots; nothing is written without the recordings."""
    from actuators import rung_table, summary

    if cfg.recordings is None or not (cfg.recordings / "so101").is_dir():
        print("real: left out; --recordings FOLDER names the folder with go2_air/ and so101/")
        return {}, ""
    folder = cfg.recordings
    makers = {"so101": so101, "go2_air": go2_air}
    runs = ACTUATORS.each(
        "real", list(makers), lambda key: summary(makers[key](folder, cfg.runs / key)), fresh=cfg.fresh
    )
    arm, dog = runs["so101"], runs["go2_air"]
    text = f"""## Recordings of real robots

SO-101 arm, ten motions of 40 to 120 s fitted, ten others judged (50 Hz, physics 250 Hz; the fitted rungs share the set
`servo`, since the servos' gains are not known). Torque has no sign in these recordings. Where UAN has the numbers of
`pace`, no net was better than it on the part of the fitted logs that is kept back, and UAN is a net of zeros. Errors in
mrad:

{rung_table(arm["rungs"], arm["recommended"])}

Recommended: {arm["recommended"]}. {arm["reason"]}.

go2 in the air, seconds 0 to 20 fitted, 20 to 35 judged (200 Hz; no torque):

{rung_table(dog["rungs"], dog["recommended"])}

Recommended: {dog["recommended"]}. {dog["reason"]}.
"""
    return {"real_recommended": {name: run["recommended"] for name, run in runs.items()}}, text


def so101(recordings: Path, runs: Path) -> Ladder:
    motions = sorted(path for path in (recordings / "so101").iterdir() if path.is_dir())
    logs = [read_log(path, "so101") for path in motions]
    cfg = LadderCfg(physics_hz=250.0)
    return climb(load_robot("so101"), logs[1::2], cfg, holdout=logs[0::2], folder=runs, resume=True)


def go2_air(recordings: Path, runs: Path) -> Ladder:
    log = read_log(next((recordings / "go2_air").glob("*.csv*")), "go2_air")
    cut = round(20.0 * log.rate_hz)
    parts = [log.window(0, cut)], [log.window(cut, len(log))]
    return climb(load_robot("go2"), parts[0], LadderCfg(), holdout=parts[1], folder=runs, resume=True)
