"""A humanoid's policy on targets that are not the simulator, and the delta action that aligns the simulator with them.

    python benchmarks/humanoid_delta.py record --runs F --policy FOLDER     once for all targets, or --targets NAME ...
    python benchmarks/humanoid_delta.py headroom|methods --runs F
    python benchmarks/humanoid_delta.py data|analytic|page --runs F

FOLDER holds policy.onnx, config.yaml, base.yaml and the motion (CSV) of a whole-body tracking policy of the g1; or F
holds a policy of our own as dance.bundle, its motion as dance.npz, and the rows are kept beside the others under the
name of --label. Rows are kept one by one: a call goes on where the one before ended.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Literal

import numpy as np
import tyro
from humanoid_delta_page import CASES, sections
from humanoid_targets import Target, roll, save, without_base
from parts import HUMANOID, Numbers

from trueup.calibrate.delta.beside.baselines import BOTH, METHODS, ROWS, ScoredMethod, learn_scored, score_beside
from trueup.calibrate.delta.beside.identify import identified, with_values
from trueup.calibrate.delta.config import DeltaCfg
from trueup.calibrate.delta.delta import DeltaResult, learn_delta
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.score import HorizonErrors, score
from trueup.calibrate.delta.shooting import DeltaShooting
from trueup.core.files import write_atomic
from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.models.delta_net import load_delta, save_delta
from trueup.motion.motion import write_motion
from trueup.motion.readers.open import open_motion
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle
from trueup.robot.load import load_robot
from trueup.tasks.foreign import bundle_task
from trueup.tasks.task import Task
from trueup.train.bundles.verbs import import_policy

TARGETS = {
    one.name: one
    for one in (
        *(
            Target(preset=f"late{more}", seed=seed)
            for seed in (0, 1)
            for more in ("", "_ankles", "_ground", "_payload")
        ),
        Target(preset="sapien", delay_s=0.025, friction_share=0.04, noise=0.15),
        Target(preset="sapien", noise=0.15),
        Target(preset="ideal"),
    )
}
OWN = ROWS["shooting"]
HELD = 1  # episode that nothing is fitted to
_SECONDS = 88.0
_SETTINGS = DeltaCfg(base="free", windows=400, hidden=(), past=3, horizons=(1, 3, 3, 5), rounds=4)
_FEET = ("ankle", "knee", "hip_pitch")


@dataclass(frozen=True)
class BenchCfg:
    part: tyro.conf.Positional[Literal["record", "headroom", "methods", "data", "analytic", "page"]]
    runs: Path
    policy: Path | None = None
    targets: tuple[str, ...] = tuple(TARGETS)
    only: tuple[str, ...] = ()  # methods or cases
    episodes: int = 24  # to record of a target, at most
    seconds: float = 0.0  # of a recorded episode; 0: the whole motion
    label: str = ""
    fresh: bool = False

    def part_of(self, part: str) -> str:
        """Where rows are kept: pages show those without a label."""
        return f"{part} {self.label}" if self.label else part


# --- recording ---
def policy_of(cfg: BenchCfg) -> tuple[PolicyBundle, Task]:
    """The imported policy with the task that has its motion."""
    bundle, motion = cfg.runs / "dance.bundle", cfg.runs / "dance.npz"
    if not bundle.exists():
        assert cfg.policy is not None, "--policy FOLDER"
        found = open_motion(next(cfg.policy.glob("*.csv")), load_robot("g1"))
        write_motion(found.cut(1.0 / found.rate_hz), motion)  # the first row is a jump
        net, layout = cfg.policy / "policy.onnx", cfg.policy / "config.yaml"
        import_policy(net, out=bundle, robot="g1", layout=layout, task=f"g1-track:{motion}")
    opened = load_bundle(bundle)
    return opened, bundle_task(opened.passport, task=f"g1-track:{motion}")


def record(cfg: BenchCfg) -> None:
    bundle, task = policy_of(cfg)
    for name in cfg.targets:
        fresh = cfg.fresh or not (cfg.runs / "logs" / name).exists()
        HUMANOID.each(cfg.part_of("record"), [name], lambda name=name: _recorded(cfg, name, bundle, task), fresh=fresh)


def _recorded(cfg: BenchCfg, name: str, bundle: PolicyBundle, task: Task) -> Numbers:
    """Every fourth episode without exploration, the others with some, until there is enough or the robot fell often."""
    rows: list[dict[str, float | bool | None]] = []
    act, spec = bundle.runner(1).act, bundle.passport.policy
    while len(rows) < cfg.episodes and (sum(float(r["seconds"]) for r in rows) < _SECONDS or len(rows) < 4):
        k = len(rows)
        noise = TARGETS[name].noise if k % 4 else 0.0
        one = roll(TARGETS[name], act, spec, task, k, noise=noise, seconds=cfg.seconds)
        save(one.log, cfg.runs / "logs" / name / f"{k}.mcap")
        rows.append({"seconds": one.seconds, "fell_s": one.fell_s, "mpjpe_mm": one.mpjpe_mm, "noise": bool(k % 4)})
    return {"episodes": rows, "seconds": sum(float(r["seconds"]) for r in rows)}


# --- fits ---
def logs_of(cfg: BenchCfg, name: str) -> tuple[list[Log], list[Log]]:
    """Episodes to fit to, and those that are held out."""
    files = sorted((cfg.runs / "logs" / name).glob("*.mcap"), key=lambda path: int(path.stem))
    logs = [read_log(path) for path in files]
    held = [logs[HELD]] if logs[HELD].time[-1] > 3.0 else [max(logs, key=len)]
    return [log for log in logs if log is not held[0] and log.time[-1] > 1.5], held


def problem_of(cfg: BenchCfg, name: str, case: str = "") -> DeltaProblem:
    """`case`: without odometry, or the number of episodes, or joints."""
    logs, held = logs_of(cfg, name)
    settings = _SETTINGS
    if case == "encoders and IMU only":
        logs = [without_base(log) for log in logs]
    if case.endswith("s of data"):
        logs = [logs[0].window(0, round(float(case.split()[0]) * 200))]
    if case == "legs only":
        names = load_robot("g1").spec.joint_names
        legs = tuple(one for one in names if any(part in one for part in ("hip", "knee", "ankle")))
        settings = replace(_SETTINGS, joints=legs)
    if case == "with the net":
        settings = replace(_SETTINGS, hidden=DeltaCfg().hidden)
    return DeltaProblem(load_robot("g1"), logs, settings, holdout=held)


def headroom(cfg: BenchCfg) -> None:
    """Replay of every target's held-out log in the nominal simulator, before anything is learned."""
    for name in cfg.targets:
        HUMANOID.each(cfg.part_of("headroom"), [name], lambda key: _nominal(cfg, key), fresh=cfg.fresh)


def _nominal(cfg: BenchCfg, name: str) -> Numbers:
    problem = problem_of(cfg, name)
    return _numbers(ScoredMethod(name="nothing", errors=score(problem.shooting, None, problem.scored), seconds=0.0))


def methods(cfg: BenchCfg) -> None:
    for name in cfg.targets:
        for method in cfg.only or (OWN, *(one for one in METHODS if one != OWN)):
            HUMANOID.each(
                cfg.part_of("methods"),
                [f"{name}/{method}"],
                lambda key, n=name, m=method: _method(cfg, n, m),
                fresh=cfg.fresh,
            )


def _method(cfg: BenchCfg, name: str, method: str) -> Numbers:
    problem = problem_of(cfg, name)
    if method == OWN:
        return _learned(cfg, problem, cfg.runs / "delta" / name)
    if method == BOTH:
        return _learned(cfg, problem.on(identified_of(cfg, name)), cfg.runs / "both" / name)
    kept = json.loads((cfg.runs / "delta" / name / "kept.json").read_text())
    result = _result(kept, cfg.runs / "delta" / name)
    return _numbers(score_beside(method, problem, result, lambda: _identified(cfg, name, problem)))


def identified_of(cfg: BenchCfg, name: str, *, published: bool = False) -> DeltaShooting:
    """The simulator with the parameters that identification finds in a target's logs."""
    return _identified(cfg, name, problem_of(cfg, name), published=published)[0]


def _identified(
    cfg: BenchCfg, name: str, problem: DeltaProblem, *, published: bool = False
) -> tuple[DeltaShooting, float]:
    """It, and the processor time that the fit took when it was made."""
    file = cfg.runs / ("published" if published else "identified") / f"{name}.json"
    if not file.exists():
        began = process_time()
        values = identified(problem, published=published)[1]
        file.parent.mkdir(exist_ok=True)
        write_atomic(file, json.dumps({"values": values, "seconds": process_time() - began}, indent=1))
    kept = json.loads(file.read_text())
    return with_values(problem, kept["values"], published=published), kept["seconds"]


def _learned(cfg: BenchCfg, problem: DeltaProblem, folder: Path | None) -> Numbers:
    result, row = learn_scored(problem)
    out = _numbers(row)
    out |= {"without": list(result.without.global_mm), "without_mpjpe": list(result.without.mpjpe_mm)}
    out |= {"by_joint": result.by_joint}
    if folder is not None:
        save_delta(result.net, folder)
        write_atomic(folder / "kept.json", json.dumps({**out, "windows": result.windows}))
    return out


def _result(kept: Numbers, folder: Path) -> DeltaResult:
    """Of a delta action that was learned before, as far as the methods beside it need it."""
    zero = (0.0, 0.0, 0.0)
    without = HorizonErrors(zero, tuple(kept["without_mpjpe"]), tuple(kept["without"]))
    return DeltaResult(
        net=load_delta(folder), without=without, corrected=without, rounds=(), round_seconds=(),
        windows=int(kept["windows"]), by_joint=kept["by_joint"], notes=(),
    )  # fmt: skip


def _numbers(one: ScoredMethod) -> Numbers:
    return {
        "at_1s_mm": one.errors.global_mm[-1],
        "global_mm": list(one.errors.global_mm),
        "mpjpe_mm": list(one.errors.mpjpe_mm),
        "seconds": one.seconds,
        "rounds": [[seconds, *errors.global_mm] for seconds, errors in one.rounds],
    }


def data(cfg: BenchCfg) -> None:
    """How much data is needed: seconds, with and without odometry, and fewer joints."""
    for name in cfg.targets:
        for case in cfg.only or CASES:
            problem = partial(problem_of, cfg, name, case)
            HUMANOID.each(
                cfg.part_of("data"),
                [f"{name}/{case}"],
                lambda key, made=problem: _learned(cfg, made(), None),
                fresh=cfg.fresh,
            )


def analytic(cfg: BenchCfg) -> None:
    """Target kp 0.65 of the source's: the share of q* - q that is taken off, and what is left of the error."""
    HUMANOID.each("analytic", ["so101"], lambda key: _analytic(), fresh=cfg.fresh)


def _analytic() -> Numbers:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
    from weak_robot import SHARE, recorded

    log, held = recorded("so101", 12.0, seed=1), recorded("so101", 6.0, seed=2)
    settings = DeltaCfg(windows=400, rounds=3, hidden=())
    problem = DeltaProblem(load_robot("so101"), [log], settings, holdout=[held])
    result = learn_delta(problem)
    rows = problem.shooting.tracks.starts(1)
    rows = rows[rows > len(log)]
    found = result.net(problem.shooting.inputs(result.net, rows))
    error = problem.shooting.tracks.target[rows] - problem.shooting.tracks.pos[rows]
    slope = float(np.sum(found * error) / np.sum(error**2))
    return {"wanted": SHARE - 1.0, "found": slope, "ratio": result.ratio}


def main(cfg: BenchCfg) -> None:
    work = {"record": record, "headroom": headroom, "methods": methods, "data": data, "analytic": analytic}
    if cfg.part in work:
        work[cfg.part](cfg)
    for part, (numbers, text) in sections(HUMANOID.load()["runs"]).items():
        word = "methods" if part == "delta" else part
        HUMANOID.merge(part, numbers, text, f"python benchmarks/humanoid_delta.py {word} --runs F")


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
