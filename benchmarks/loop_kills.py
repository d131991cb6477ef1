"""A loop of tiny budgets, killed with kill -9 at random moments and started again: the same hashes must come out.

python benchmarks/loop_kills.py WORKSPACE ROBOT [START]     run the tiny loop there; what is killed by `loop.py`
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from trueup.loop.run import run_loop
from trueup.loop.verbs import STAGES, Budgets, LoopVerb
from trueup.loop.workspace import Workspace

TINY = Budgets(
    record_s=8.0, windows=3, tie="kind", iterations=3, rungs="pd", train_steps=16_384, more_steps=8_192, nenv=64,
    trials=4, suite="locomotion_short", worlds=2, deploy_s=1.0, second="none", save_s=1.0,
)  # fmt: skip
DRIVER = "twin:mild?seed=3"
_POLL_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A loop that came to its end; `stages`: in which each kill came."""

    stages: list[str]
    hashes: dict[str, str]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A time to kill at: so long after this stage began."""

    stage: str
    after_s: float


def tiny_loop(workspace: Path, robot: str, start: Path | None) -> None:
    """Both rounds, without page and films; resumes what is there."""
    asked = LoopVerb(robot=robot, driver=DRIVER, workspace=workspace, start=start, threads=1, page=False, films=False)
    run_loop(asked, lambda stage, what, seconds, line: None, budgets=TINY)


def random_moments(whole: Workspace, count: int, seed: int) -> list[Moment]:
    """Moments spread evenly over the time that an undisturbed loop spent in its stages, in their order."""
    keys = [f"round-{k}/{name}" for k in whole.rounds() for name in STAGES]
    lasted = [max(0.2, whole.times(int(key[6]), key[8:]).seconds) for key in keys]
    ends, rng = list(accumulate(lasted)), random.Random(seed)
    moments = []
    for at in sorted(rng.uniform(0.0, ends[-1]) for _ in range(count)):
        k = next(k for k, end in enumerate(ends) if at <= end)
        moments.append(Moment(stage=keys[k], after_s=at - (ends[k] - lasted[k])))
    return moments


def run_and_kill(workspace: Path, robot: str, start: Path | None, moments: list[Moment]) -> Ended:
    """The loop, killed at each moment and started again, to its end."""
    began, stages = time.monotonic(), []
    for moment in moments:
        child = _start(workspace, robot, start)
        _wait_until_begun(workspace / moment.stage, child)
        time.sleep(moment.after_s)
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            stages.append(_present_stage(workspace))
    child = _start(workspace, robot, start)
    if child.wait() != 0:
        raise SystemExit(f"the loop failed: {(workspace / 'loop.log').read_text()[-2000:]}")
    return Ended(stages=stages, hashes=Workspace(workspace).hashes(), seconds=time.monotonic() - began)


def _wait_until_begun(stage: Path, child: subprocess.Popen[bytes]) -> None:
    """Until the stage runs, or is done, or the loop has ended."""
    before = (stage / "stage.log").stat().st_size if (stage / "stage.log").exists() else 0
    while child.poll() is None and not (stage / "manifest.json").exists():
        if (stage / "stage.log").exists() and (stage / "stage.log").stat().st_size > before:
            return
        time.sleep(_POLL_S)


def _start(workspace: Path, robot: str, start: Path | None) -> subprocess.Popen[bytes]:
    workspace.mkdir(parents=True, exist_ok=True)
    with (workspace / "loop.log").open("ab") as log:
        words = [__file__, str(workspace), robot, *([] if start is None else [str(start)])]
        return subprocess.Popen([sys.executable, *words], stdout=log, stderr=log)


def _present_stage(workspace: Path) -> str:
    """The stage that has begun and is not done; "between" where there is none."""
    begun = {one.parent for one in workspace.glob("round-*/*/request.json")}
    open_ = sorted(one for one in begun if not (one / "manifest.json").exists())
    return f"{open_[0].parent.name}/{open_[0].name}" if open_ else "between stages"


if __name__ == "__main__":
    tiny_loop(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]) if len(sys.argv) > 3 else None)
