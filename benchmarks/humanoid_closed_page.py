"""The sections of `humanoid_closed.py`: what a policy does on the target after it has learned in different worlds."""

from __future__ import annotations

from statistics import median
from typing import Any

from humanoid_delta_page import Runs
from parts import Numbers, table

_RIVALS = ("vanilla", "noise", "ranges", "identified")
_ARMS = ("vanilla", "nominal", "noise", "ranges", "published", "identified", "delta", "both")
_HEAD = ("target", "learned in", "from the root, mm", "in the world, mm", "falls", "stood for, s")
Arms = dict[str, dict[str, Any]]  # rows by arm


def sections(runs: dict[str, Runs]) -> dict[str, tuple[Numbers, str]]:
    """Numbers and text by part, of the parts that have been measured."""
    makers = {"feedforward": _feedforward, "tuned": _tuned, "closed": _closed}
    return {part: make(runs) for part, make in makers.items() if runs.get(part)}


def _by_target(runs: Runs) -> dict[str, Arms]:
    out: dict[str, Arms] = {}
    for key, run in runs.items():
        target, arm, _ = key.split("/")
        out.setdefault(target, {})[arm] = run
    return out


def _row(target: str, arm: str, run: dict[str, Any]) -> tuple[str, ...]:
    falls = f"{run['falls']} of {run['episodes']}"
    return target, arm, f"{run['mpjpe_mm']:.1f}", f"{run['global_mm']:.0f}", falls, f"{run['lasted_s']:.1f}"


def _feedforward(runs: dict[str, Runs]) -> tuple[Numbers, str]:
    by_target, rows = _by_target(runs["feedforward"]), []
    for target, found in by_target.items():
        for arm in (arm for arm in _ARMS if arm in found):
            run = found[arm]
            there = f"{run['before_mm']:.1f} → {run['after_mm']:.1f}" if "before_mm" in run else ""
            rows.append((*_row(target, arm, run), there, f"{run['seconds']:.0f}"))
    others = {name: found for name, found in by_target.items() if ":" not in name}
    own = {name: found for name, found in by_target.items() if ":" in name}
    steps, episodes = (max(run[name] for run in runs["feedforward"].values()) for name in ("steps", "episodes"))
    text = f"""## Closed loop: a feedforward that is learned in the corrected simulator

`trueup policy feedforward`: the policy's network stays as it is. It runs its motion from the first row to the last in
16 copies at once, and what each joint lacks at each row is added, smoothed, to the targets of that row (iterative
learning control), ten times over: for the dance {steps:,} control steps. The round with the smallest error in the
simulator where it learns is kept. Then it acts on the target, {episodes} episodes, without what corrected the
simulator.

`vanilla` is the policy as it came. `nominal` learned in the simulator as it is; `noise` under action noise as large as
the correction; `ranges` under the task's randomisation and pushes; `published` with the gains, mass and centre of mass
that identification found in the target's logs, `identified` with delay, dry friction and encoder biases too; `delta`
under the delta action; `both` under one on top of what was identified. Where the robot falls, errors are those until
then.

Better: fewer falls, or as many and stood longer if there were any, else a smaller error from the root. With the dance
of others **`delta` is better than `vanilla`, `noise`, `ranges` and `identified` together on {_won_of(others)} targets**
(asked: 8 of 10): {_each_arm(others)}. {_lost(others)}
{_own_text(own)}
{_gains(others)} On `sapien` no correction was found that helps: there `delta` is the simulator as it is.

{table((*_HEAD, "there, before → after, mm", "CPU-s"), rows)}"""
    return {"closed_loop_wins_feedforward": _won_of(others), "closed_loop_wins_own_policy": _won_of(own)}, text


def _tuned(runs: dict[str, Runs]) -> tuple[Numbers, str]:
    by_target, rows = _by_target(runs["tuned"]), []
    as_it_came = _by_target(runs["feedforward"])
    for target, found in by_target.items():
        found["vanilla"] = as_it_came[target]["vanilla"]
        for arm in (arm for arm in _ARMS if arm in found):
            rows.append((*_row(target, arm, found[arm]), f"{found[arm]['seconds']:.0f}"))
    steps = {int(key.rpartition("/")[2]) for key in runs["tuned"]}
    text = f"""## Closed loop: a feedforward, then PPO

A feedforward makes joints follow more closely and leaves less room to balance: falls are what it loses by. So the
policy with its offsets is trained on, in the same world, for {max(steps):,} control steps (`trueup train --from
trued.bundle --delta delta/`): for each arm the way of the table before, then PPO. The same episodes, arms and rule.

**`delta` is better than `vanilla`, `noise`, `ranges` and `identified` together on {_won_of(by_target)} targets**
(asked: 8 of 10): {_each_arm(by_target)}. {_lost(by_target)}
{_gains(by_target)}
What is lost is lost to identification: twice a robot with weak ankles or on soft ground that falls, once nothing that
can be told apart. Errors in the world are larger than those of `vanilla` on most targets: nothing tells the policy
where it is. One training for each arm, and four episodes that differ in sensor noise and in when they begin.

{table((*_HEAD, "CPU-s"), rows)}"""
    return {"closed_loop_wins": _won_of(by_target)}, text


def _better(own: dict[str, Any], other: dict[str, Any]) -> bool:
    """Fewer falls; as many, and stood longer if there were any; else a smaller error."""

    def key(run: dict[str, Any]) -> tuple[float, float, float]:
        return run["falls"], -run["lasted_s"] if run["falls"] else 0.0, run["mpjpe_mm"]

    return key(own) < key(other)


def _won_of(by_target: dict[str, Arms]) -> str:
    whole = [found for found in by_target.values() if {*_RIVALS, "delta"} <= set(found)]
    won = sum(all(_better(found["delta"], found[arm]) for arm in _RIVALS) for found in whole)
    return f"{won} of {len(whole)}"


def _lost(by_target: dict[str, Arms]) -> str:
    """Each target that is not won, and to what."""
    told = []
    for target, found in by_target.items():
        for arm in (arm for arm in _RIVALS if arm in found and not _better(found["delta"], found[arm])):
            runs = [found[name] for name in ("delta", arm)]
            what = " to ".join(f"{run['mpjpe_mm']:.2f} mm and {run['falls']} falls" for run in runs)
            told.append(f"{target} to `{arm}` ({what})")
    return f"Lost: {', '.join(told)}." if told else ""


def _each_arm(by_target: dict[str, Arms]) -> str:
    told = []
    for arm in (arm for arm in _ARMS if arm != "delta"):
        pairs = [(found["delta"], found[arm]) for found in by_target.values() if {arm, "delta"} <= set(found)]
        if pairs:
            told.append(f"than `{arm}` on {sum(_better(*pair) for pair in pairs)} of {len(pairs)}")
    return ", ".join(told)


def _own_text(own: dict[str, Arms]) -> str:
    if not own:
        return ""
    return f"""With our own policy for the walk ("walk": its own logs, its own delta actions) on {_won_of(own)}:
{_each_arm(own)}. {_lost(own)}"""


def _closed(runs: dict[str, Runs]) -> tuple[Numbers, str]:
    rows, by_target = [], {}
    most = max(int(key.rpartition("/")[2]) for key in runs["closed"])  # arms are compared after as many steps
    for key, run in sorted(runs["closed"].items()):
        target, arm, steps = key.split("/")
        if int(steps) == most:
            by_target.setdefault(target, {})[arm] = run
        shown = (f"{run['mpjpe_mm']:.1f}", f"{run['falls']} of {run['episodes']}", f"{run['lasted_s']:.1f}")
        rows.append((target, arm, f"{run['steps']:,}", *shown, f"{run['seconds']:.0f}"))
    head = ("target", "trained in", "steps", "from the root, mm", "falls", "stood for, s", "CPU-s")
    shown_arms = (*_RIVALS, "nominal")
    against = {
        arm: [_better(one["delta"], one[arm]) for one in by_target.values() if {arm, "delta"} <= set(one)]
        for arm in shown_arms
    }
    whole = [one for one in by_target.values() if all(arm in one for arm in (*_RIVALS, "delta"))]
    wins = sum(all(_better(one["delta"], one[arm]) for arm in _RIVALS) for one in whole)
    told = ", ".join(f"`{arm}` on {sum(found)} of {len(found)}" for arm, found in against.items() if found)
    text = f"""## Closed loop after fine-tuning by PPO

The published way. `g1_dance_102` is the start (`trueup train --from`), trained on for the same number of steps in
different worlds, and then follows its dance on the target without them, three episodes. `vanilla` is the policy as it
came; `nominal` is trained on in the simulator as it is; `identified` in the one with the parameters that identification
found in the same logs; `both` with a delta action on top of it; `ranges` under the task's randomisation and pushes;
`noise` under action noise as large as the correction. One training each: what another seed of the training changes
was not measured.

The delta action is better (fewer falls, or as many and a smaller error) than {told} targets measured; than the first
four on {wins} of {len(whole)} on which they were measured. Ten were asked. {_gains(by_target)}

{table(head, rows)}

{_homes(runs)}"""
    return {"closed_loop_wins_ppo": f"{wins} of {len(whole)}"}, text


def _gains(by_target: dict[str, dict[str, dict[str, Any]]]) -> str:
    """What training gains on targets where no episode fell, by arm: how much of it is knowledge of the target."""
    arms = ("nominal", "noise", "ranges", "identified", "delta")
    gains: dict[str, list[float]] = {arm: [] for arm in arms}
    for found in by_target.values():
        if "vanilla" in found and not found["vanilla"]["falls"]:
            for arm in arms:
                if arm in found and not found[arm]["falls"]:
                    gains[arm].append(1.0 - found[arm]["mpjpe_mm"] / found["vanilla"]["mpjpe_mm"])
    told = ", ".join(f"`{arm}` {100 * median(found):.1f} % ({len(found)})" for arm, found in gains.items() if found)
    return f"""Taken off the error of `vanilla` (median; number of targets where neither fell): {told}. What `nominal`
gains is not knowledge of the target."""


def _homes(runs: dict[str, Runs]) -> str:
    """Each step to the target: how hard the corrected simulator is, what is learned in it, and what is kept."""
    if not runs.get("home"):
        return ""
    rows = []
    for key, home in runs["home"].items():
        target, arm, steps = key.split("/")
        found = runs["closed"].get(f"{target}/vanilla/{steps}"), runs["closed"].get(key)
        there = [f"{one['mpjpe_mm']:.1f}" if one else "" for one in found]
        world = "as it is" if arm == "nominal" else f"delta action of {target}"
        rows.append((world, f"{home['before_mm']:.1f}", f"{home['after_mm']:.1f}", *there))
    head = ("simulator", "in it, before", "in it, after", "on the target, before", "on the target, after")
    return f"""Where it is lost: the same policies in the simulator that they were trained in (mm from a motion that
stands where the robot does, with sensor noise) and on the target (mm from the root). A corrected simulator in which
the policy as it came is no worse than at home lacks what makes the target hard; one in which training gains little was
given too few steps.

{table(head, rows)}"""
