"""Harder ground and harder robots: the parts `rough`, `adaptation` and `adr` of `train.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import tyro
from curves import Chart, Curve
from numpy.typing import NDArray
from on_twin import walk_on_twins
from parts import TRAIN, table

from trueup.policy.runner import Policy, PolicyRunner
from trueup.rl.settings import DistillCfg
from trueup.robot.model import compile_model
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task, make_env
from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.folder import RunFolder
from trueup.train.train import assess_run, train
from trueup.twin.truth.truth import Truth

Part = Literal["target", "race", "update", "overhead", "kills", "rough", "adaptation", "adr"]
TASK = "go2-velocity"
ASSESS_SEED = 2_000_000  # none that was used during training


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured (all parts if none is named), and how long each training may take.

    minutes  where wall clock is what counts (target, race)
    steps    elsewhere: control steps of a training
    """

    part: tyro.conf.Positional[Part | None] = None
    seeds: tuple[int, ...] = (0, 1, 2)
    minutes: float = 15.0
    steps: int = 5_000_000
    runs: Path = Path("runs/benchmark")
    fresh: bool = False


def continued(cfg: RunCfg, path: Path, budget: Budget) -> RunFolder:
    """Train, or go on with what is there; a training that was stopped is no result."""
    outcome = train(cfg, path, budget, resume=(path / "config.json").exists())
    if outcome.reason == "interrupted":
        raise SystemExit(f"{path.name} was stopped before its end: run the same command again")
    return RunFolder(path)


# --- rough ---
_ROUGH = {"blind": "go2-velocity-rough", "with a map of the ground": "go2-velocity-rough-map"}


def rough(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    seed = cfg.seeds[0]

    def one(name: str) -> dict[str, object]:
        task = _ROUGH[name]
        run = RunCfg(task=task, seed=seed, nenv=512, learner=default_learner(task))
        folder = continued(run, cfg.runs / f"{task}-{seed}", Budget(steps=cfg.steps, save_s=60.0))
        rows = folder.read_metrics()
        every = max(1, len(rows) // 20)
        curve = [[round(r["steps"] / 1e6, 1), round(r["terrain/level"], 2)] for r in rows[::every]]
        return {"levels": curve, "success": _success(task, PolicyRunner(folder.newest_policy()))}

    found = TRAIN.each("rough", list(_ROUGH), one, fresh=cfg.fresh)
    chart = Chart(
        x="million control steps",
        y="mean level",
        curves=[Curve(name=name, points=one["levels"], colour=k) for k, (name, one) in enumerate(found.items())],
    )
    text = f"""## Rough terrain

{chart.write("train_rough")}

Mean level of the curriculum over {cfg.steps / 1e6:g} M steps. One seed each; one policy feels the ground only through
its joints, the other sees heights around it (`go2-velocity-rough-map`).

{chr(10).join(_levels(name, one["levels"]) for name, one in found.items())}

Share of episodes of 20 s without a fall, by kind and level (a robot that stops in front of a gap does not fall: the
mean level says who crosses):

{chr(10).join(_by_level(name, one["success"]) for name, one in found.items())}
"""
    return {"rough_level_last": {name: one["levels"][-1][1] for name, one in found.items()}}, text


def _levels(name: str, levels: list[list[float]]) -> str:
    lowest = min(x for _, x in levels)
    return (
        f"- {name}: from {levels[0][1]:g} by way of {lowest:g} (who cannot walk yet falls to the lowest level) to "
        f"{levels[-1][1]:g}"
    )


def _by_level(name: str, success: dict[str, dict[str, float]]) -> str:
    levels = sorted({int(k) for row in success.values() for k in row})
    rows = [(kind, *(row[str(k)] for k in levels)) for kind, row in success.items()]
    return f"{name}:\n\n{table(('ground', *(f'level {k}' for k in levels)), rows)}\n"


def _success(name: str, policy: Policy) -> dict[str, dict[str, float]]:
    """Share of rows that do not fall in an episode, by kind of ground and level."""
    task, out = load_task(name), {}
    probe = make_env(task, EnvCfg(nenv=1, threads=1))
    assert probe.climb is not None
    terrain = probe.climb.terrain.cfg
    for level in range(terrain.levels):
        env = make_env(
            task,
            EnvCfg(nenv=12 * len(terrain.kinds), seed=77, level=level, randomize=False, pushes=False, stagger=False),
        )
        fallen, obs = np.zeros(env.nenv, bool), env.reset()
        for _ in range(round(task.rates.episode_s / env.control_dt)):
            step = env.step(np.ascontiguousarray(policy(obs), np.float32))
            fallen |= step.terminated
            obs = step.obs
        for k, kind in enumerate(terrain.kinds):
            share = 1.0 - float(fallen[env.climb.kind == k].mean())
            out.setdefault(kind, {})[str(level)] = round(share, 2)
    return out


# --- adaptation ---
_HERE = Path(__file__).resolve().parent
HARD = f"{_HERE / 'hard_task.py'}:go2_hard"
ONE_FRAME = f"{HARD}_one_frame"
_CASES = {
    "payload": "payload",
    "weak motors": "weak",
    "slippery ground": "slippery",
    "these three": "all",
    "late and sticky": "late",
}
_TWINS = range(14_000, 14_030)


def adaptation(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    seed = cfg.seeds[0]
    base = RunCfg(task=HARD, seed=seed, nenv=512, learner=default_learner(TASK))
    teacher_ppo = replace(base.learner, net=replace(base.learner.net, latent=8))
    budget = Budget(steps=cfg.steps, save_s=60.0)
    robust = continued(base, cfg.runs / f"robust-{seed}", budget)
    blind = continued(replace(base, task=ONE_FRAME), cfg.runs / f"one-frame-{seed}", budget)
    expert = continued(replace(base, learner=teacher_ppo), cfg.runs / f"expert-{seed}", budget)
    student_cfg = replace(base, learner=DistillCfg(), teacher=str(expert.path))
    rma = continued(student_cfg, cfg.runs / f"rma-{seed}", Budget(steps=cfg.steps // 3, save_s=60.0))
    policies: dict[str, Callable[[int], Policy]] = {
        "robust, one frame": lambda n: PolicyRunner(blind.newest_policy(), n),
        "robust": lambda n: PolicyRunner(robust.newest_policy(), n),
        "RMA without adaptation": lambda n: _Unadapted(expert.newest_policy()),
        "RMA": lambda n: PolicyRunner(rma.newest_policy(), n),
        "expert": lambda n: PolicyRunner(expert.newest_policy(), n),
    }
    found = TRAIN.each(
        "adaptation",
        list(policies),
        lambda name: _on_hard_twins(policies[name], ONE_FRAME if "one frame" in name else HARD),
        fresh=cfg.fresh,
    )
    rows = [(name, *_cells(cases)) for name, cases in found.items()]
    text = f"""## Adaptation

Success (share of {len(_TWINS)} twins on which no fall happens in 20 s of commands) / mean error in m/s until a fall.
Twins have hidden loads (a quarter to a third of the mass), weak motors (55 to 65 % of what they report), slippery
ground (friction 0.15 to 0.2), these three together (friction 0.2 to 0.25), or commands that come 25 to 35 ms late and
gears with 0.7 to 1.2 N m more dry friction (3 to 5 % of the torque limit), beside noise, encoder bias and wrong joint
dynamics. Every policy was trained in the same ranges, {cfg.steps / 1e6:g} M steps (the student a third of that, on
top of the expert). The expert is told the hidden factors; the others see what the robot reports: three frames (60 ms),
or one. Where nearly nobody falls, the error is what tells policies apart.

{table(("policy", *_CASES, "mean success", "mean error"), rows)}

{_worth_knowing(found)}
"""
    errors = {name: round(_mean_error(cases), 4) for name, cases in found.items()}
    success = {name: _mean_success(cases) for name, cases in found.items()}
    return {"adaptation_success": success, "adaptation_error": errors}, text


def _worth_knowing(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """Whether the task or the method is at fault when adaptation brings nothing: the expert is the bound."""
    blind, expert = (_mean_error(found[name]) for name in ("robust, one frame", "expert"))
    if expert > 0.95 * blind:
        return (
            f"The expert, which is told everything, comes to {expert:.3f} m/s, a policy with one frame and no past to "
            f"{blind:.3f}: in this task, with so many steps and one seed, knowing the hidden factors is worth nothing, "
            "and no way to find them out can show."
        )
    return f"Knowing the hidden factors is worth {blind - expert:.3f} m/s here: that is what adaptation could bring."


def _on_hard_twins(make: Callable[[int], Policy], task: str = HARD) -> dict[str, object]:
    env = make_env(load_task(task), EnvCfg(nenv=1, threads=1))
    told = Factors(env)
    return {
        case: asdict(walk_on_twins(make, env.policy_spec(), _HERE / f"presets/{file}.toml", _TWINS, factors=told))
        for case, file in _CASES.items()
    }


def _cells(cases: dict[str, dict[str, float]]) -> list[str]:
    walks = [cases[case] for case in _CASES]
    cells = [f"{100 - 100 * w['falls'] / w['episodes']:.0f} % / {w['error']:.2f}" for w in walks]
    return [*cells, f"{100 * _mean_success(cases):.1f} %", f"{_mean_error(cases):.3f}"]


def _mean_success(cases: dict[str, dict[str, float]]) -> float:
    return round(float(np.mean([1 - cases[case]["falls"] / cases[case]["episodes"] for case in _CASES])), 4)


def _mean_error(cases: dict[str, dict[str, float]]) -> float:
    return float(np.mean([cases[case]["error"] for case in _CASES]))


class Factors:
    """The hidden factors of a twin as the expert knew them in training: its truth, in shares of the task's ranges."""

    def __init__(self, env: TaskEnv) -> None:
        randomizer = env.variation.randomizer
        assert randomizer is not None
        self._names, self._ranges = randomizer.factor_names, env.task.randomize
        self._base = env.robot.spec.base.body
        self._friction = compile_model(env.robot).dof_frictionloss[env.sim.index.dof]

    def __call__(self, truth: Truth) -> NDArray[np.float32]:
        parts = []
        for name, width in self._names:
            if name == "posterior":
                continue
            draw = self._ranges[name]
            values = np.broadcast_to(np.ravel(self._value(name, truth)), (width,))
            parts.append((values - 0.5 * (draw.low + draw.high)) / (0.5 * (draw.high - draw.low)))
        return np.concatenate(parts).astype(np.float32)

    def _value(self, name: str, truth: Truth) -> NDArray[np.float64] | float:
        body, ground = truth.body, truth.ground
        assert body is not None
        assert ground is not None
        at = body.names.index(self._base)
        ratio = min(ground.dampratio, 1.0)
        bounce = 0.0 if ratio >= 1.0 else float(np.exp(-np.pi * ratio / np.sqrt(1.0 - ratio**2)))
        return {
            "mass_scale": body.mass_scale[at],
            "com_offset": body.com_offset[at],
            "payload": 0.0 if truth.payload is None else truth.payload.mass,
            "contact_friction": ground.friction,
            "restitution": bounce,
            "tilt": 0.0,
            "motor_strength": float(np.mean(truth.joint.torque_scale)),
            "delay": truth.delay_s,
            "friction": float(np.mean(truth.joint.friction - self._friction)),
        }[name]


class _Unadapted(PolicyRunner):
    """The expert with the latent of an average robot: factors at their means."""

    def latent(self, privileged):
        mean = self.net.privileged_normalizer.mean.astype(np.float32)
        return super().latent(np.broadcast_to(mean, privileged.shape))


# --- ADR ---
def adr(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    seed = cfg.seeds[0]
    base = RunCfg(task=HARD, seed=seed, nenv=512, learner=default_learner(TASK))
    budget = Budget(steps=cfg.steps, save_s=60.0)
    fixed = continued(base, cfg.runs / f"robust-{seed}", budget)
    grown = continued(replace(base, adr=True), cfg.runs / f"adr-{seed}", budget)
    folders = {"fixed ranges": fixed, "ADR": grown}

    def one(name: str) -> dict[str, object]:
        nominal = assess_run(folders[name], seed=ASSESS_SEED)
        shown = {"nominal": {"episodes": nominal.episodes, "falls": nominal.falls, "error": nominal.error}}
        return shown | _on_hard_twins(lambda n: PolicyRunner(folders[name].newest_policy(), n))

    found = TRAIN.each("adr", list(folders), one, fresh=cfg.fresh)
    rows = []
    for name, cases in found.items():
        walk = cases["nominal"]
        rows.append((name, f"{100 - walk['falls']:.0f} % / {walk['error']:.2f}", *_cells(cases)))
    metrics = grown.read_metrics()
    width = [[round(r["steps"] / 1e6, 1), round(r["adr/log_width"], 2)] for r in metrics[:: max(1, len(metrics) // 12)]]
    last = metrics[-1]
    names = sorted({key.split("/")[1] for key in last if key.startswith("adr/") and key.count("/") == 2})
    ends = [
        (name, f"{last[f'adr/{name}/low']:.3g}", f"{last[f'adr/{name}/high']:.3g}", *_full_range(name))
        for name in names
    ]
    text = f"""## ADR against fixed ranges

Success / mean error in m/s after {cfg.steps / 1e6:g} M steps each, in the nominal simulation and on the twins of the
adaptation ladder.

{table(("ranges", "nominal", *_CASES, "mean success", "mean error"), rows)}

Mean log width of ADR's ranges over training: {", ".join(f"{m:g} M {w:g}" for m, w in width)}. Where they ended:

{table(("parameter", "low", "high", "full low", "full high"), ends)}
"""
    return {"adr_success": {name: _mean_success(cases) for name, cases in found.items()}}, text


def _full_range(name: str) -> tuple[str, str]:
    draw = load_task(HARD).randomize[name]
    return f"{draw.low:.3g}", f"{draw.high:.3g}"
