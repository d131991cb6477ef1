"""Output of `trueup sim LOG... --params FIT`: errors per log and per joint, and a page with traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from trueup.calibrate.score_logs import JointErrors, LogScores, ModelScore, joint_errors, score_logs
from trueup.core.errors import TrueupError
from trueup.report.page import Page
from trueup.report.robot import calibrated_robot
from trueup.report.terminal import text_table
from trueup.report.traces import joint_traces
from trueup.world.fitted.calibration import read_calibration
from trueup.world.verbs import SimVerb

WORSE = "WORSE THAN NOMINAL: on these logs the fit predicts worse than the model without it. Do not use it for them."
_MOST_SHOWN = 4
Row = tuple[str, list[float]]  # label, errors by column


def run_logs(verb: SimVerb, console: Console) -> int:
    """Score logs, print, write the page."""
    fit = verb.cfg.params
    fit = read_calibration(fit) if isinstance(fit, str | Path) else fit
    robot = verb.robot if fit is None else calibrated_robot(fit, verb.robot)
    if robot is None:
        raise TrueupError(f"{verb.what[0]} is a log: say whose with --robot (a built-in name, a folder or a spec)")
    scores = score_logs(robot, verb.what, fit, mapping=verb.mapping)
    print_scores(scores, console)
    if verb.page is not None:
        console.print(f"page   {scores_page(scores).write(verb.page)}", soft_wrap=True)
    return 0


def print_scores(scores: LogScores, console: Console) -> None:
    """Errors per log and per joint, in mrad."""
    if scores.worse:
        console.print(WORSE, style="bold red")
    columns = ("", *(f">{name}" for name in _columns(scores)))
    for title, rows in _tables(scores).items():
        shown = [(label, *(f"{value:.3f}" for value in values)) for label, values in rows]
        console.print(text_table(columns, shown, title=f"{title}, mrad"))
    console.print(_about(scores))
    for note in scores.notes:
        console.print(f"note: {note}", style="dim", markup=False)


def scores_page(scores: LogScores) -> Page:
    """Errors by log and by joint, and traces of the first logs."""
    page = Page(f"Logs of {scores.robot} in the simulator", "Recorded commands, replayed without a refit.")
    page.facts({**facts_of(scores), "logs": len(scores.logs), "physics": f"{scores.physics_hz:g} Hz"})
    if scores.worse:
        page.text(WORSE)
    page.text(_about(scores))
    for title, rows in _tables(scores).items():
        page.section(title)
        page.table(("mrad", *_columns(scores)), [(label, *values) for label, values in rows])
    for k, nominal in enumerate(scores.nominal.replays[:_MOST_SHOWN]):
        page.section(f"Log {_name(scores, k)}")
        signals = {"measured": nominal.measured_pos[0]}
        signals |= {name: np.nan_to_num(model.replays[k].joint_pos[0]) for name, model in _models(scores).items()}
        page.plot(joint_traces(nominal.time, signals, scores.joint_names, "rad"))
    return page


def facts_of(scores: LogScores) -> dict[str, str]:
    """Open-loop errors in words."""
    models = _models(scores).items()
    return {f"{name}, open loop": f"{1e3 * model.open_loop.rmse_mean:.2f} mrad" for name, model in models}


def _models(scores: LogScores) -> dict[str, ModelScore]:
    """The nominal model, and the fit if there is one."""
    return {"nominal": scores.nominal} | ({} if scores.calibrated is None else {"fit": scores.calibrated})


def _columns(scores: LogScores) -> list[str]:
    return [f"{name} {error}" for error in ("RMSE", "MAE") for name in _models(scores)]


def _tables(scores: LogScores) -> dict[str, list[Row]]:
    """Rows of errors (mrad) by title: open loop per log and per joint, then windows."""
    models = list(_models(scores).values())
    whole = [_means(_name(scores, k), [joint_errors([m.replays[k]]) for m in models]) for k in range(len(scores.logs))]
    out = {
        "Open loop, by log": [*whole, _means("all", [m.open_loop for m in models])],
        "Open loop, by joint": _by_joint(scores, [m.open_loop for m in models]),
    }
    if scores.nominal.windows is not None:
        cut = [k for k in range(len(scores.logs)) if scores.nominal.cut[k]]
        out["Windows of 0.5 s, by log"] = [
            _means(_name(scores, k), [joint_errors(m.cut[k]) for m in models]) for k in cut
        ]
        out["Windows of 0.5 s, by joint"] = _by_joint(scores, [m.windows for m in models])
    return out


def _means(label: str, errors: Sequence[JointErrors | None]) -> Row:
    known = [error for error in errors if error is not None]
    return label, [*(1e3 * error.rmse_mean for error in known), *(1e3 * error.mae_mean for error in known)]


def _by_joint(scores: LogScores, errors: Sequence[JointErrors | None]) -> list[Row]:
    known = [error for error in errors if error is not None]
    values = [*(error.rmse for error in known), *(error.mae for error in known)]
    rows = [(name, [1e3 * column[k] for column in values]) for k, name in enumerate(scores.joint_names)]
    return [*rows, _means("mean", errors)]


def _name(scores: LogScores, k: int) -> str:
    """A log's label: number, duration and recorded origin."""
    log = scores.logs[k]
    origin = next((log.meta[key] for key in ("file", "source", "driver") if key in log.meta), "")
    words = ", ".join(map(str, origin)) if isinstance(origin, list | tuple) else str(origin)
    return f"{k + 1}: {log.time[-1] - log.time[0]:.1f} s {words}".strip()


def _about(scores: LogScores) -> str:
    words = (
        f"RMSE and MAE of joint position, mean over joints; physics at {scores.physics_hz:g} Hz; open loop from the "
        "first sample to the last, and windows of 0.5 s from recorded states."
    )
    lost = {"nominal": "of the nominal model", "fit": "with the fit"}
    return words + "".join(
        f" {model.diverged} of {len(scores.logs)} simulations {lost[name]} blew up."
        for name, model in _models(scores).items()
        if model.diverged
    )
