"""Stages that measure the robot: record, check, calibrate, ladder."""

from __future__ import annotations

import shutil
from pathlib import Path

from trueup.calibrate.fit.search import STATE_FILE
from trueup.loop.context import Context
from trueup.loop.fingerprint import fingerprint
from trueup.loop.stage import Stage, StageCommand, verb
from trueup.world.fitted.refit import REFIT_FILE, read_refit

_LOAD_S = 16.0
_ON_GROUND = ("mass_scale", "com_offset", "contact_friction")


def record(loop: Context, round_: int) -> Stage:
    """Record a motion in the air; from the second round on another one, and squats to weigh a legged robot's load."""
    if loop.asked.logs:
        return _given(loop, round_)
    squats = round_ > 1 and loop.is_legged
    seconds, seed = loop.budgets.record_s, loop.asked.seed + round_ - 1
    options = ("--lockstep",) if loop.is_twin else ()

    def commands(folder: Path) -> list[StageCommand]:
        air = ("--seconds", seconds, "--seed", seed, "--overwrite", *options, "--out", folder / "air.mcap")
        out = [verb("record", *loop.robot_words, "--driver", loop.driver(), *air)]
        if squats:
            how = ("--excitation", "squat", "--seconds", _LOAD_S, "--amplitude", 0.8, "--overwrite", *options)
            free = ("--driver", loop.driver("free"), "--out", folder / "squat.mcap")
            out.append(verb("record", *loop.robot_words, *how, *free))
        return out

    config = {
        "robot": loop.robot_facts,
        "driver": loop.asked.driver,
        "seconds": seconds,
        "seed": seed,
        "squats": squats,
    }
    return Stage(
        name="record", round=round_, config=config, commands=commands, outputs=("*.mcap",), budget_s=2 * seconds,
        after=() if round_ == 1 else ((round_ - 1, "gap"),),
    )  # fmt: skip


def _given(loop: Context, round_: int) -> Stage:
    """Copy given recordings, so that the workspace is self-contained."""

    def commands(folder: Path) -> list[StageCommand]:
        for one in loop.asked.logs:
            shutil.copyfile(one, folder / one.name)
        return []

    config = {"robot": loop.robot_facts, "logs": {one.name: fingerprint(one) for one in loop.asked.logs}}
    return Stage(name="record", round=round_, config=config, commands=commands, outputs=("*.mcap",), budget_s=2.0)


def check(loop: Context, round_: int) -> Stage:
    """Run the validator; an unusable log ends the loop."""
    logs = [*loop.logs(round_), *loop.unseen()] if loop.asked.logs else loop.logs(round_)[-1:]

    def commands(folder: Path) -> list[StageCommand]:
        return [verb("data", "check", one, "--robot", *loop.robot_words) for one in logs]

    return Stage(name="check", round=round_, after=((round_, "record"),), commands=commands, budget_s=10.0)


def calibrate(loop: Context, round_: int) -> Stage:
    """Fit; later rounds begin from the last fit, with all logs, the diagnosis' request and the load."""
    budgets, squat = loop.budgets, loop.folder(round_, "record") / "squat.mcap"
    logs = loop.logs(round_)
    config = {
        "params": loop.asked.params, "held out": [one.name for one in loop.unseen()], "tie": budgets.tie,
        "windows": budgets.windows, "iterations": budgets.iterations, "seed": loop.asked.seed,
        "robot": loop.robot_facts,
    }  # fmt: skip
    after = [(k, "record") for k in range(1, round_ + 1)]
    if round_ > 1:
        after += [(round_ - 1, "calibrate"), (round_ - 1, "gap")]

    def commands(folder: Path) -> list[StageCommand]:
        first = folder / ("air" if round_ > 1 and loop.is_legged else "fit")
        how: list[object] = ["--robot", *loop.robot_words, "--out", first, "--tie", budgets.tie, "--starts", 1]
        how += ["--resume"] if (first / STATE_FILE).exists() else []
        how += ["--max-windows", budgets.windows, "--iterations", budgets.iterations, "--seed", loop.asked.seed]
        how += ["--holdout", *loop.unseen()] if loop.unseen() else []
        how += ["--start", loop.fit(round_ - 1)] if round_ > 1 else []
        suspects = suspected(loop.folder(round_ - 1, "gap")) if round_ > 1 else ()
        how += ["--params", ",".join((loop.asked.params, *suspects))]
        out = [verb("calibrate", *logs, *how)]
        if first.name == "air":
            out.append(
                verb("calibrate", "load", squat, "--robot", *loop.robot_words, "--fit", first, "--out", folder / "fit")
            )
        return out

    return Stage(
        name="calibrate", round=round_, after=tuple(after), config=config, commands=commands,
        outputs=("fit/params.json",), budget_s=90.0 if not loop.asked.full else 900.0,
    )  # fmt: skip


def suspected(gap: Path) -> tuple[str, ...]:
    """Parameters that a diagnosis suspects, as far as a robot in the air can show them.

    Loads are weighed by squats; the ground shows in neither.
    """
    if not (gap / REFIT_FILE).exists():
        return ()
    return tuple(dict.fromkeys(one.name for one in read_refit(gap).suspects if one.name not in _ON_GROUND))


def ladder(loop: Context, round_: int) -> Stage:
    """Actuator models side by side on the same log."""

    def commands(folder: Path) -> list[StageCommand]:
        logs = loop.logs(round_) if loop.asked.logs else loop.logs(round_)[-1:]
        held = ("--holdout", *loop.unseen()) if loop.unseen() else ()
        how = (
            *held,
            "--robot",
            *loop.robot_words,
            "--rungs",
            loop.budgets.rungs,
            "--seed",
            loop.asked.seed,
            "--resume",
        )
        return [verb("calibrate", "actuator", *logs, *how, "--out", folder)]

    return Stage(
        name="ladder", round=round_, after=((round_, "record"),), commands=commands, outputs=("ladder.json",),
        config={"rungs": loop.budgets.rungs, "seed": loop.asked.seed, "robot": loop.robot_facts},
        budget_s=60.0 if not loop.asked.full else 2400.0,
    )  # fmt: skip
