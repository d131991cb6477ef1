"""Criteria of a rung: each with the required and the measured value."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.deploy.ladder.records import RUNG_CFGS, Rung, RungAnswer
from trueup.deploy.ladder.replay import TOLERANCE, LogReplay
from trueup.deploy.ladder.shadow import Shadowed
from trueup.deploy.session.outcome import RunOutcome
from trueup.deploy.session.recording import Written

MOST_OUTSIDE = 0.05  # share of steps with a term outside its training range
MOST_OUTSIDE_SHADOW = 0.5  # another program moves the robot, by another policy perhaps
MOST_DISTANCE = 2.0  # median RMS z-score
MOST_MISSES = 0.01  # share of control steps
FALLEN_RAD = 1.0
_MOTORS = ("nonfinite", "negative_gain", "malformed", "beyond_limits")


def judge_replay(difference: float, log: LogReplay | None) -> list[RungAnswer]:
    """Golden sequences through the controller; with a log also whether its observations lie in the training range."""
    out = [
        _judged(
            "golden", difference <= TOLERANCE, f"targets within {TOLERANCE:g}", f"largest difference {difference:.2g}"
        )
    ]
    if log is not None:
        asked = f"in its training range in {1 - MOST_OUTSIDE_SHADOW:.0%} of the steps"
        seen = f"{log.in_range:.1%} of {log.steps} steps" + (f" ({log.outside[0]})" if log.outside else "")
        out.append(_judged("log", log.in_range >= 1 - MOST_OUTSIDE_SHADOW, asked, seen))
    return out


def judge_shadow(found: Shadowed, written: Written | None) -> list[RungAnswer]:
    """Plausible targets on schedule; if another program commands the robot, observations in the training range too."""
    run = found.outcome
    out = [_ended("shadow", run), _deadline(run)]
    if found.compared:
        out.append(_range(run, MOST_OUTSIDE_SHADOW))
    return out + _recording(written)


def judge_run(
    rung: Rung, run: RunOutcome, written: Written | None, *, floating: bool, tap: Mapping[str, int] | None = None
) -> list[RungAnswer]:
    """A run on the robot or twin; `tap`: counts at a twin's motors."""
    out = [_ended(rung, run), _deadline(run)]
    if rung in ("ground", "full"):
        out.append(_range(run, MOST_OUTSIDE))
        if np.isfinite(run.distance_median):
            asked = f"median distance to training at most {MOST_DISTANCE:g}"
            out.append(_judged("distance", run.distance_median <= MOST_DISTANCE, asked, f"{run.distance_median:.2f}"))
        if floating and np.isfinite(run.tilt_rad):
            asked = f"tilt below {np.degrees(FALLEN_RAD):.0f} deg"
            out.append(_judged("upright", run.tilt_rad < FALLEN_RAD, asked, f"{np.degrees(run.tilt_rad):.0f} deg"))
    if tap:
        bad = {name: tap.get(name, 0) for name in _MOTORS if tap.get(name, 0)}
        found = ", ".join(f"{count} {name}" for name, count in bad.items()) or f"none of {tap.get('commands', 0)}"
        out.append(_judged("motors", not bad, "no command at the motors that is not finite or beyond limits", found))
    return out + _recording(written)


def _ended(rung: Rung, run: RunOutcome) -> RungAnswer:
    least = RUNG_CFGS[rung].least_s
    asked = f"the policy ran for {least:g} s and was not stopped"
    passed = run.ended in ("done", "interrupted") and run.seconds >= least - 1e-9
    why = f": {run.guard}: {run.reason}" if run.ended in ("estop", "tripped") else ""
    return _judged("run", passed, asked, f"{run.ended} after {run.seconds:.1f} s{why}")


def _deadline(run: RunOutcome) -> RungAnswer:
    asked = f"at most {MOST_MISSES:.0%} of the control steps late by a period"
    found = f"{run.misses} of {run.steps}; lateness 99.9 % {run.late_ms[1]:.1f} ms"
    return _judged("deadline", run.misses <= MOST_MISSES * max(run.steps, 1), asked, found)


def _range(run: RunOutcome, most: float) -> RungAnswer:
    term, share = max(run.outside.items(), key=lambda one: one[1], default=("", 0.0))
    found = f"{term} outside in {share:.1%} ({run.first_outside[term]})" if term else "all inside"
    return _judged(
        "range", share <= most, f"every term inside its training range in {1 - most:.0%} of the steps", found
    )


def _recording(written: Written | None) -> list[RungAnswer]:
    if written is None:
        return []
    bad = written.error or (f"{written.dropped} rows dropped" if written.dropped else "")
    return [_judged("recording", not bad, "every row on disk", bad or f"{written.rows} rows")]


def _judged(name: str, passed: bool, asked: str, found: str) -> RungAnswer:
    return RungAnswer(name=name, passed=bool(passed), asked=asked, found=found)
