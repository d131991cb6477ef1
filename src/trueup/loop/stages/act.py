"""Stages on the robot: deploy, rung by rung, and gap, the diagnosis of its runs."""

from __future__ import annotations

import shutil
from pathlib import Path

from trueup.loop.context import Context
from trueup.loop.stage import Stage, StageCommand, verb
from trueup.loop.stages.learn import BUNDLE, copied

# commands of a walking robot on the last rung, one per run
WALKS = (
    ("forward=0.5",), ("forward=0.3", "turn=0.5"), ("forward=0.4", "sideways=0.2"), ("forward=0.8",),
    ("forward=0.3", "sideways=-0.2", "turn=-0.3"), ("forward=-0.3",), ("sideways=0.3",), ("turn=0.8",),
    ("forward=0.6", "turn=-0.5"), ("forward=-0.5", "sideways=-0.1"), ("sideways=-0.3",), ("forward=0.2",),
)  # fmt: skip
_NOT_PASSED = (1, 3)
_GROUND_S = 10.0  # required by the rung `ground`
_DIAGNOSED = 3  # runs of the last rung that the diagnosis reads


def deploy(loop: Context, round_: int) -> Stage:
    """All rungs up to the first that is not passed; a twin needs no certificate, which is recorded."""
    if loop.asked.logs:
        absent = "recordings were given and no robot: `trueup deploy BUNDLE --driver ...` is yours to run"
        return Stage(name="deploy", round=round_, after=((round_, "train"), (round_, "verify")), absent=absent)
    walks = WALKS if loop.walks else ((),)
    seconds = loop.budgets.deploy_s
    config = {"driver": loop.asked.driver, "seconds": seconds, "walks": [list(walk) for walk in walks]}

    def commands(folder: Path) -> list[StageCommand]:
        for old in (*folder.glob("*.ladder"), *(one for one in folder.iterdir() if one.is_dir())):
            shutil.rmtree(old, ignore_errors=True)
        bundle = copied(loop.folder(round_, "train" if loop.unproven else "verify") / BUNDLE, folder)
        robot = () if loop.robot.built_in else ("--robot", *loop.robot_words)
        free = "--uncertified" if loop.is_twin else "--no-uncertified"
        out = [verb("deploy", bundle, "--rung", "replay", *robot, last=_NOT_PASSED)]
        rungs: list[tuple[str, str, tuple[str, ...]]] = [("shadow", "shadow", ()), ("hang", "hang", ())]
        rungs += [("ground", "ground", ("forward=0.3",) if loop.walks else ())]
        rungs += [("full", f"full-{k + 1:02d}", walk) for k, walk in enumerate(walks)]
        for rung, name, walk in rungs:
            held = "fixed" if rung in ("hang", "shadow") else "free"
            words: list[object] = ["deploy", bundle, "--rung", rung, "--driver", loop.driver(held), free, "--no-keys"]
            words += ["--out", folder / name, *robot, *(("--command", *walk) if walk else ())]
            lasts = {"ground": max(_GROUND_S, seconds), "full": seconds}
            words += ["--seconds", lasts[rung]] if rung in lasts else []
            out.append(
                verb(
                    *words, ok=(0, *_NOT_PASSED) if rung == "full" else (0,), last=() if rung == "full" else _NOT_PASSED
                )
            )
        return out

    return Stage(
        name="deploy", round=round_, after=((round_, "train"), (round_, "verify")), config=config, commands=commands,
        outputs=("*/policy.rows",), budget_s=90.0 if loop.is_twin else 180.0,
    )  # fmt: skip


def gap(loop: Context, round_: int) -> Stage:
    """The diagnosis of the runs on the last rung (or of given recordings), and its request for the next fit."""

    def commands(folder: Path) -> list[StageCommand]:
        given = loop.unseen() or (loop.logs(round_) if loop.asked.logs else [])
        logs = given or robot_logs(loop.folder(round_, "deploy"))
        if not logs:
            return []
        words: list[object] = ["gap", *logs, "--params", loop.fit(round_), "--out", folder]
        words += [] if given else ["--bundle", loop.folder(round_, "train") / BUNDLE]
        words += [] if loop.robot.built_in else ["--robot", *loop.robot_words]
        return [verb(*words, ok=(0, 1))]

    return Stage(
        name="gap", round=round_, after=((round_, "calibrate"), (round_, "train"), (round_, "deploy")),
        commands=commands, outputs=("result.json", "refit.json"), budget_s=60.0,
    )  # fmt: skip


def robot_logs(deploy_folder: Path) -> list[Path]:
    """The robot's own recordings of the highest rung that ran, a few of them."""
    for name in ("full-*", "ground"):
        if found := sorted(deploy_folder.glob(f"{name}/robot.mcap")):
            return found[:_DIAGNOSED]
    return []
