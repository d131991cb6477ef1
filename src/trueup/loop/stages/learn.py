"""Stages that train and test a policy: train, evaluate, verify."""

from __future__ import annotations

import shutil
from pathlib import Path

from trueup.loop.context import Context
from trueup.loop.stage import Stage, StageCommand, verb

BUNDLE = "policy.bundle"
_PACE = 5000.0  # control steps per second, for the expected duration


def train(loop: Context, round_: int) -> Stage:
    """Train a policy in the calibrated simulator; later rounds continue from the last policy in the refitted one."""
    steps = loop.train_steps(round_)
    config = {"steps": steps, "nenv": loop.nenv, "seed": loop.asked.seed, "robot": loop.robot_facts}
    config |= loop.start_facts if round_ == 1 else {}
    start = loop.folder(round_ - 1, "train") / "run" if round_ > 1 else loop.asked.start
    after = ((round_, "calibrate"), *(((round_ - 1, "train"),) if round_ > 1 else ()))

    def commands(folder: Path) -> list[StageCommand]:
        run = folder / "run"
        shutil.rmtree(folder / BUNDLE, ignore_errors=True)
        how: list[object] = ["--steps", steps, "--film-minutes", 0, "--save-seconds", loop.budgets.save_s]
        if any((run / "checkpoints").glob("*")):
            words: list[object] = ["train", "--resume", run, *how]
        else:
            shutil.rmtree(run, ignore_errors=True)
            words = ["train", loop.task, "--out", run, "--params", loop.fit(round_), "--seed", loop.asked.seed, *how]
            words += ["--nenv", loop.nenv, "--threads", loop.asked.threads]
            words += [] if loop.robot.built_in else ["--robot", *loop.robot_words]
            words += [] if start is None else ["--from", start.resolve()]
        return [verb(*words), verb("export", run, "--out", folder / BUNDLE, "--seed", loop.asked.seed)]

    return Stage(
        name="train", round=round_, after=after, config=config | loop.task_facts, commands=commands,
        outputs=(f"{BUNDLE}/policy.onnx", f"{BUNDLE}/golden.npz"), budget_s=20.0 + steps / _PACE,
    )  # fmt: skip


def evaluate(loop: Context, round_: int) -> Stage:
    """Scenarios, in draws of the calibration's posterior."""
    budgets = loop.budgets
    config = {"trials": budgets.trials, "seed": loop.asked.seed} | loop.suite_facts

    def commands(folder: Path) -> list[StageCommand]:
        bundle = loop.folder(round_, "train") / BUNDLE
        words: list[object] = ["evaluate", bundle, "--params", loop.fit(round_), "--out", folder]
        words += ["--trials", budgets.trials, "--seed", loop.asked.seed, "--threads", loop.asked.threads, *_films(loop)]
        return [verb(*words, *_suite(loop), ok=(0, 1))]

    after = ((round_, "calibrate"), (round_, "train"))
    return Stage(
        name="evaluate", round=round_, after=after, config=config, commands=commands, outputs=("**/score.json",),
        absent=loop.unproven,
        budget_s=60.0 if not loop.asked.full else 900.0,
    )  # fmt: skip


def verify(loop: Context, round_: int) -> Stage:
    """Run the gate; a policy that does not pass is a result, too."""
    budgets = loop.budgets
    config = {
        "trials": budgets.trials, "worlds": budgets.worlds, "second": budgets.second, "seed": loop.asked.seed,
    } | loop.suite_facts  # fmt: skip

    def commands(folder: Path) -> list[StageCommand]:
        bundle = copied(loop.folder(round_, "train") / BUNDLE, folder)
        _hand_over_trials(loop.folder(round_, "evaluate"), folder / "gate" / "mujoco")
        words: list[object] = ["verify", bundle, "--params", loop.fit(round_), "--out", folder / "gate"]
        words += ["--trials", budgets.trials, "--worlds", budgets.worlds, "--second", budgets.second, "--no-films"]
        words += ["--seed", loop.asked.seed, "--threads", loop.asked.threads]
        return [verb(*words, *_suite(loop), ok=(0, 1))]

    after = ((round_, "calibrate"), (round_, "train"), (round_, "evaluate"))
    return Stage(
        name="verify", round=round_, after=after, config=config, commands=commands,
        absent=loop.unproven, outputs=(f"{BUNDLE}.certificate.json",), budget_s=60.0 if not loop.asked.full else 1800.0,
    )  # fmt: skip


def copied(bundle: Path, folder: Path) -> Path:
    """A stage's own copy of a bundle and its certificate, beside which it writes its records."""
    target = folder / bundle.name
    if not target.exists():
        part = folder / f".{bundle.name}.part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(bundle, part)
        part.rename(target)
    certificate = bundle.with_name(f"{bundle.name}.certificate.json")
    if certificate.exists():
        shutil.copyfile(certificate, folder / certificate.name)
    return target


def _hand_over_trials(evaluated: Path, target: Path) -> None:
    """Copy the evaluation's trials for the gate, which runs the same scenarios."""
    for name in ("scenarios", "worst"):
        if (evaluated / name).is_dir() and not (target / name).exists():
            part = target / f".{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(evaluated / name, part)
            part.rename(target / name)


def _suite(loop: Context) -> tuple[str, ...]:
    return ("--scenarios", loop.suite) if loop.suite else ()


def _films(loop: Context) -> tuple[str, ...]:
    return () if loop.asked.films else ("--no-films",)
