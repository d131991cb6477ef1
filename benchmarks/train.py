"""What training is worth on this machine, part by part; results are merged into docs/results/train.md and .json.

    python benchmarks/train.py target        three seeds of go2-velocity to 0.15 m/s without falls, with curves
    python benchmarks/train.py race          time to the same score: ours, rsl_rl in our environment, Stable-Baselines3
    python benchmarks/train.py update        processor time of one update, ours against rsl_rl's
    python benchmarks/train.py overhead      control steps per second of the task over bare physics
    python benchmarks/train.py kills         30 kill -9 of a real process, resumed, compared bit for bit
    python benchmarks/train.py rough         terrain levels over training; success by kind and level
    python benchmarks/train.py adaptation    robust, RMA without adaptation, RMA, expert, in hard simulations
    python benchmarks/train.py adr           ranges that grow against fixed ones

Every run is kept under --runs and continues if it was interrupted; `--fresh` forgets the part's numbers.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np
import tyro
from curves import Chart, Curve
from parts import TRAIN, table
from train_hard import ASSESS_SEED, TASK, BenchCfg, adaptation, adr, continued, rough
from train_race import RaceCfg, race

from trueup.policy.runner import PolicyRunner
from trueup.rl.ppo import Ppo
from trueup.rl.settings import PpoCfg
from trueup.tasks.env import EnvCfg
from trueup.tasks.load import load_task, make_env
from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.folder import RunFolder
from trueup.train.train import assess_run

ASKED_ERROR = 0.15


def main(cfg: BenchCfg) -> None:
    parts: dict[str, Callable[[BenchCfg], tuple[dict[str, object], str]]] = {
        "target": target,
        "race": race_part,
        "update": update,
        "overhead": overhead,
        "kills": kills,
        "rough": rough,
        "adaptation": adaptation,
        "adr": adr,
    }
    for name in parts if cfg.part is None else (cfg.part,):
        numbers, text = parts[name](cfg)
        TRAIN.merge(name, numbers, text, " ".join(["python", "benchmarks/train.py", *sys.argv[1:]]))


# --- target ---
def target(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    runs = TRAIN.each(
        "target", [str(seed) for seed in cfg.seeds], lambda seed: _to_target(cfg, int(seed)), fresh=cfg.fresh
    )
    reached = [run["minutes_to_target"] if run["final_reaches"] else None for run in runs.values()]
    worst = None if None in reached else max(reached)
    rows = [
        (
            seed,
            "not" if run["minutes_to_target"] is None else f"{run['minutes_to_target']:.1f}",
            f"{run['minutes']:.1f}",
            f"{run['error']:.3f}",
            run["falls"],
            f"{run['randomized_error']:.3f}",
            run["randomized_falls"],
            f"{run['steps'] / 1e6:.2f} M",
            f"{run['steps_per_s']:,.0f}",
        )
        for seed, run in runs.items()
    ]
    head = (
        "seed",
        "minutes to target",
        "whole run",
        "error m/s",
        "falls",
        "randomised error",
        "falls",
        "steps",
        "steps/s",
    )
    assessed = "\n".join(
        f"- seed {seed}: " + ", ".join(f"{m:.1f} min {e:.3f} ({f} falls)" for m, e, f in run["assessed"])
        for seed, run in runs.items()
    )
    faint = [Curve(name=seed, points=run["curve"], colour=k, faint=True) for k, (seed, run) in enumerate(runs.items())]
    clear = [Curve(name=f"seed {seed}", points=run["assessed"], colour=k) for k, (seed, run) in enumerate(runs.items())]
    chart = Chart(x="minutes of training", y="error, m/s", curves=[*faint, *clear], level=("asked", ASKED_ERROR))
    text = f"""## {TASK}: minutes to target

Target: mean error of linear velocity below {ASKED_ERROR} m/s and no falls in 100 episodes of 20 s over the whole range
of commands, nominal robot, no exploration. Training goes on for {cfg.minutes:g} minutes of wall clock, assessments and
start-up included, and is assessed every minute on episodes never met before; "minutes to target" is the assessment
from which on every one reached it. Error and falls are those of the last policy, on other episodes still; randomised
ones have the task's ranges and pushes.

{table(head, rows)}

{chart.write("train_target")}

Dots: assessments, nominal and without exploration; thin lines: while training, exploring, in ranges that grow.

{assessed}
"""
    return {"minutes_to_target": worst, "minutes_to_target_by_seed": reached}, text


def _to_target(cfg: BenchCfg, seed: int) -> dict[str, object]:
    run = RunCfg(task=TASK, seed=seed, learner=default_learner(TASK))
    budget = Budget(minutes=cfg.minutes, target=ASKED_ERROR, past_target=True, save_s=60.0)
    folder = continued(run, cfg.runs / f"target-{seed}", budget)
    facts, rows = folder.newest().facts, folder.read_metrics()
    when = {int(row["steps"]): row["elapsed_s"] / 60 for row in rows}
    lines = (folder.path / "assessments.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    good = list(itertools.takewhile(lambda record: record["reached"], reversed(found)))
    nominal = assess_run(folder, seed=ASSESS_SEED)
    varied = assess_run(folder, seed=ASSESS_SEED, randomize=True)
    every = max(1, len(rows) // 40)
    return {
        "minutes": facts["elapsed_s"] / 60,
        "minutes_to_target": when[good[-1]["steps"]] if good else None,
        "steps": facts["steps"],
        "steps_per_s": facts["steps"] / facts["elapsed_s"],
        "final_reaches": nominal.reaches(ASKED_ERROR),
        "error": nominal.error,
        "falls": nominal.falls,
        "randomized_error": varied.error,
        "randomized_falls": varied.falls,
        "assessed": [[round(when[r["steps"]], 2), round(r["error"], 4), r["falls"]] for r in found],
        "curve": [[round(r["elapsed_s"] / 60, 2), round(r["velocity_error"], 3)] for r in rows[::every]],
    }


# --- race ---
def race_part(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    setting = RaceCfg()
    ours = TRAIN.each("race", ["trueup 0", "trueup 1"], lambda key: _race(key, setting), fresh=cfg.fresh)
    mine = _mean_minutes(ours)
    patience = replace(setting, minutes=min(setting.minutes, 6.0 * mine))  # beyond five times, nothing more to learn
    keys = ["rsl_rl 0", "rsl_rl 1", "sb3 0"]
    runs = ours | TRAIN.each("race", keys, lambda key: _race(key, patience), fresh=False)

    def ratio(name: str) -> float:
        return round(_mean_minutes({k: v for k, v in runs.items() if k.startswith(name)}) / mine, 2)

    def shown(run: dict[str, object]) -> str:
        return f"{run['minutes']:.2f}" if run["minutes"] else f"not in {run['spent_minutes']:.1f}"

    rows = [
        (key, shown(run), f"{run['steps_per_s']:,.0f}", f"{run['curve'][-1][1] / 1e6:.2f} M", run["curve"][-1][2])
        for key, run in runs.items()
    ]
    chart = Chart(
        x="minutes of learning",
        y="tracking score",
        curves=[
            Curve(name=key, points=[(c[0] / 60, c[2]) for c in run["curve"]], colour=k)
            for k, (key, run) in enumerate(runs.items())
        ],
        level=("asked", setting.score),
    )
    text = f"""## Time to the same score

{setting.task}, same model, same reward, nominal simulations; score {setting.score} of the tracking reward, judged
without noise in {setting.episodes} episodes of {setting.seconds:g} s with the clock stopped. rsl_rl drives the same
environment with the same settings (its own step-size rule, no mirror images, no bound of the noise); Stable-Baselines3
has the same network, discount and initial noise, its own normalisation of observations and rewards, its other defaults
and {setting.processes} processes. A learner that does not get there counts with the time it was given: its ratio is
then a lower bound.

{table(("learner and seed", "minutes to score", "steps/s", "steps", "last score"), rows)}

{chart.write("train_race")}

Ratios of mean times: Stable-Baselines3 {ratio("sb3")}, rsl_rl {ratio("rsl_rl")}.
"""
    return {"speedup_vs_sb3": ratio("sb3"), "speedup_vs_rsl_rl": ratio("rsl_rl")}, text


def _race(key: str, setting: RaceCfg) -> dict[str, object]:
    name, seed = key.split()
    return race(name, setting, int(seed))


def _mean_minutes(runs: dict[str, dict[str, object]]) -> float:
    """A run that did not get there counts with the time it was given."""
    return float(np.mean([run["minutes"] or run["spent_minutes"] for run in runs.values()]))


# --- update ---
def update(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    """Processor time of learning from one rollout, the same sizes, alternating in one process."""
    import torch
    from rsl_rl.runners import OnPolicyRunner

    from trueup.train.adapters.rsl_rl import RslRlEnv, rsl_rl_config

    def env():
        return make_env(load_task(TASK), EnvCfg(nenv=512, threads=1, seed=0))

    torch.set_num_threads(1)
    settings = PpoCfg(side_by_side=False)
    ours = Ppo(env(), settings)
    theirs = OnPolicyRunner(RslRlEnv(env()), rsl_rl_config(settings), log_dir=None)
    theirs.logger.init_logging_writer()
    obs, times = theirs.env.get_observations(), {"trueup": [], "rsl_rl": []}
    for k in range(6):
        rng = np.random.default_rng(k)
        ours.collector.collect(ours.actor, ours.rollout, rng)
        start = process_time()
        ours.compute_advantages()
        ours.update(rng)
        times["trueup"].append(process_time() - start)
        with torch.inference_mode():
            for _ in range(settings.steps):
                obs, reward, done, extras = theirs.env.step(theirs.alg.act(obs))
                theirs.alg.process_env_step(obs, reward, done, extras)
        start = process_time()
        with torch.inference_mode():
            theirs.alg.compute_returns(obs)
        theirs.alg.update()
        times["rsl_rl"].append(process_time() - start)
    ours.close()
    best = {name: min(found[1:]) for name, found in times.items()}
    ratio = round(best["rsl_rl"] / best["trueup"], 2)
    text = f"""## Update

Processor time to learn from 512 x 24 samples, 5 epochs of 4 minibatches, 256-128-64 for actor and critic, one thread:
ours {best["trueup"]:.3f} s, rsl_rl {best["rsl_rl"]:.3f} s, ratio {ratio}. On two cores actor and critic learn side by
side, which this figure leaves out.
"""
    return {"update_speedup_vs_rsl_rl": ratio}, text


# --- overhead ---
def overhead(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    from task import measure_overhead

    found = {"stumble (random actions)": measure_overhead(512, 0, 400)}
    numbers: dict[str, object] = {"overhead_ratio": found["stumble (random actions)"].ratio}
    trained = cfg.runs / f"target-{cfg.seeds[0]}"
    if trained.exists():
        policy = PolicyRunner(RunFolder(trained).newest_policy(), 512)
        found["walk (trained policy, noise of training)"] = measure_overhead(512, 0, 400, policy=policy)
        numbers["overhead_ratio_walking"] = list(found.values())[-1].ratio
    numbers["overhead_ratio_to_nominal"] = {name: one.task / one.nominal for name, one in found.items()}
    rows = [
        (
            name,
            f"{one.task:,.0f}",
            f"{one.bare:,.0f}",
            f"{one.ratio:.4f}",
            f"{one.task / one.nominal:.4f}",
            f"{one.share:.0%}",
        )
        for name, one in found.items()
    ]
    text = f"""## Overhead

{TASK}, 512 simulations: control steps/s of the task (observations, rewards, resets, randomisation) against bare
physics on the same states, controls and parameters, step by step in the same run. Asked: 0.85. Robots that stumble fall
in nearly every step of the batch, as in the first minute of a training; resets are half of the overhead then. Against
physics with nominal parameters the ratio is lower: the drawn ones, bouncy ground above all, cost the solver more.

{table(("robots", "task", "bare physics", "ratio", "ratio to nominal physics", "cores that physics got"), rows)}
"""
    return numbers, text


# --- kills ---
def kills(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    test = "tests/train/test_kills.py::test_killed_and_resumed_equals_uninterrupted[30]"
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", test], cwd=root, capture_output=True, text=True)
    passed = done.returncode == 0
    text = f"""## Kills

30 kill -9 at random moments of a training process, each resumed: {"every" if passed else "NOT every"} checkpoint whole,
and the final state {"equal" if passed else "NOT equal"} to that of the uninterrupted run bit for bit (`pytest {test}`).
"""
    return {"kills_survived": 30 if passed else 0}, text


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
