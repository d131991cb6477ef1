"""The ladder on recordings of real robots: part `real` of `actuators.py`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from parts import ACTUATORS

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.ladder import Ladder, run_ladder
from trueup.calibrate.actuator.recommend import StepCheck, overfits, recommend
from trueup.calibrate.actuator.rungs import RUNGS
from trueup.calibrate.actuator.score import PositionError, Scores
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
    known = ACTUATORS.load()["runs"].get("real", {})

    def one(key: str) -> Numbers:
        rungs = HUNG_RUNGS if key == "go2_hung" else "all"
        made = MAKERS[key](folder, cfg.runs / key, cfg.anew or rungs)
        return updated(known.get(key), summary(made), made.file.finer) if cfg.anew else summary(made)

    runs = ACTUATORS.each("real", list(MAKERS), one, fresh=cfg.fresh or cfg.anew is not None)
    arm, dog, hung = (runs[key] for key in MAKERS)
    gain = {key: ratio(run) for key, run in runs.items()}
    text = f"""## Recordings of real robots

SO-101 arm, ten motions of 40 to 120 s fitted, ten others judged (50 Hz, physics 250 Hz; the fitted rungs share the set
`servo`, since the servos' gains are not known). Torque has no sign in these recordings. How UAN learns was chosen on
the part of the fitted logs that is kept back, not on what is judged here. UAN over `pace`: {gain["so101"]:.2f}. Errors
in mrad:

{rung_table(arm["rungs"], arm["recommended"])}

Recommended: {arm["recommended"]}. {arm["reason"]}.

go2 in the air, seconds 0 to 20 fitted, 20 to 35 judged (200 Hz; no torque). UAN over `pace`: {gain["go2_air"]:.2f}.
What is lacking here follows from the motion of the other legs more than from a joint's own past: the base swings, and
no model of an actuator can have that.

{rung_table(dog["rungs"], dog["recommended"])}

Recommended: {dog["recommended"]}. {dog["reason"]}.

The same with the stand, the stops and the gains among the fitted numbers (set `hung,kp,kd`; the row that is called pace
is this set). UAN learns on the stand and leaves it behind. UAN over its base: {gain["go2_hung"]:.2f}.

{rung_table(hung["rungs"], hung["recommended"])}

Recommended: {hung["recommended"]}. {hung["reason"]}.
"""
    numbers: Numbers = {
        "real_recommended": {name: run["recommended"] for name, run in runs.items()},
        "real_uan_over_pace": gain,
    }
    return numbers, text


def ratio(run: Numbers) -> float:
    """Whole-rollout error of UAN over that of its base."""
    rungs: dict[str, Numbers] = run["rungs"]  # type: ignore[assignment]
    return float(rungs["uan"]["whole"]) / float(rungs["pace"]["whole"])  # type: ignore[arg-type]


def updated(before: Numbers | None, now: Numbers, finer: StepCheck | None) -> Numbers:
    """Numbers kept from before with rungs that were fitted anew in their place, and the recommendation of all."""
    if before is None:
        return now
    rungs: dict[str, Numbers] = {**before["rungs"], **now["rungs"]}  # type: ignore[dict-item]
    done = {name: r for name, r in rungs.items() if r["status"] == "done" and "whole" in r}
    chosen = recommend(
        {name: _scores(done[rung.name]) for rung in RUNGS if (name := rung.name) in done},
        [name for name, facts in done.items() if facts.get("bounded") is False],
        finer,
    )
    bad = overfits({rung.name: _scores(rungs[rung.name]) for rung in RUNGS if "whole" in rungs.get(rung.name, {})})
    for name, facts in rungs.items():
        if "whole" in facts:
            facts["beaten_by"] = bad.get(name, "")
    return {"recommended": chosen.rung, "reason": chosen.reason, "rungs": rungs}


def _scores(facts: Numbers) -> Scores:
    """Kept numbers as far as a recommendation needs them."""

    def error(mean: str) -> PositionError:
        return PositionError(seconds=None, mean=float(facts[mean]), se=float(facts["se"]), joints=[])  # type: ignore[arg-type]

    return Scores(held=[error("whole")], train=error("train"))


def so101(recordings: Path, runs: Path, rungs: str) -> Ladder:
    motions = sorted(path for path in (recordings / "so101").iterdir() if path.is_dir())
    logs = [read_log(path, "so101") for path in motions]
    cfg = LadderCfg(physics_hz=250.0, rungs=rungs)
    return run_ladder(load_robot("so101"), logs[1::2], cfg, holdout=logs[0::2], folder=runs, resume=True)


def go2_air(recordings: Path, runs: Path, rungs: str, params: str | None = None) -> Ladder:
    log = read_log(next((recordings / "go2_air").glob("*.csv*")), "go2_air")
    cut = round(20.0 * log.rate_hz)
    parts = [log.window(0, cut)], [log.window(cut, len(log))]
    cfg = LadderCfg(rungs=rungs, params=params)
    return run_ladder(load_robot("go2"), parts[0], cfg, holdout=parts[1], folder=runs, resume=True)


MAKERS = {"so101": so101, "go2_air": go2_air, "go2_hung": partial(go2_air, params="hung,kp,kd")}
HUNG_RUNGS = "pd,pace,uan"  # friction models beyond M1 are slow with so many numbers
