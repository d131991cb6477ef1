"""The sections of `humanoid_delta.py`: tables of what was measured, and what they say."""

from __future__ import annotations

from statistics import median
from typing import Any

from parts import Numbers, table

from trueup.calibrate.delta.beside.baselines import BOTH, IDENTIFIED, METHODS, PUBLISHED

HORIZONS = ("0.25 s", "0.5 s", "1 s")
SECONDS = ("2 s of data", "5 s of data", "10 s of data", "20 s of data")
CASES = (*SECONDS, "encoders and IMU only", "legs only", "with the net")
PPO = "delta action by PPO"
_RIVALS = ("vanilla", "noise", "ranges", "identified")
_ARMS = ("vanilla", "nominal", "noise", "ranges", "published", "identified", "delta", "both")
Runs = dict[str, dict[str, Any]]


def sections(runs: dict[str, Runs]) -> dict[str, tuple[Numbers, str]]:
    """Numbers and text by part, of the parts that have been measured."""
    makers = {
        "headroom": _headroom,
        "delta": _delta,
        "analytic": _analytic,
        "data": _data,
        "feedforward": _feedforward,
        "closed": _closed,
    }
    needs = {part: part for part in makers} | {"delta": "methods"}
    return {part: make(runs) for part, make in makers.items() if runs.get(needs[part])}


def _by_target(runs: dict[str, Runs]) -> dict[str, dict[str, dict[str, Any]]]:
    out: dict[str, dict[str, dict[str, Any]]] = {}
    for key, run in runs["methods"].items():
        target, _, method = key.partition("/")
        out.setdefault(target, {})[method] = run
    return {name: found for name, found in out.items() if "delta action" in found}


def _mm(values: list[float]) -> list[str]:
    return [f"{value:.1f}" if value < 100 else f"{value:.0f}" for value in values]


def _headroom(runs: dict[str, Runs]) -> tuple[Numbers, str]:
    rows = []
    for name, found in runs["headroom"].items():
        met = runs.get("record", {}).get(name, {}).get("episodes", [])
        falls = sum(one["fell_s"] is not None for one in met)
        plain = [one["mpjpe_mm"] for one in met if not one["noise"] and one["fell_s"] is None]
        worst = f"{max(plain):.0f}" if plain else "fell"
        rows.append((name, f"{falls} of {len(met)}", worst, *_mm(found["global_mm"])))
    head = ("target", "falls", "from the root, mm", *(f"replay, {h}" for h in HORIZONS))
    text = f"""## Headroom: a policy of others on targets that are not the simulator

`g1_dance_102` follows its dance (29 s) on every target through one evaluation loop; three of four episodes with noise
of 0.1 (second engine: 0.15) on its actions, correlated over 0.2 s. Then, before anything is learned, its recorded
commands are replayed in the nominal simulator from recorded states: mean distance of all bodies from the recorded ones
in the world, mm (E_g-mpjpe), on the held-out episode. `from the root` is the tracking error on the target without noise
(25 mm at home). Nobody balances in a replay: distances grow by themselves, and the row `ideal`, a twin without any
hidden effect, says how much of them is that.

{table(head, rows)}"""
    return {"headroom_1s_mm": {name: run["at_1s_mm"] for name, run in runs["headroom"].items()}}, text


def _delta(runs: dict[str, Runs]) -> tuple[Numbers, str]:
    rows, ratios, quarter, forms = [], {}, {}, []
    beaten: list[bool] = []
    published: list[bool] = []
    for name, found in _by_target(runs).items():
        nothing = found["delta action"]["without"]
        for method in METHODS:
            run = {"global_mm": nothing, "seconds": 0.0} if method == "nothing" else found.get(method)
            if run is None:
                continue
            share = run["global_mm"][-1] / nothing[-1]
            rows.append((name, method, *_mm(run["global_mm"]), f"{share:.2f}", f"{run['seconds']:.0f}"))
        own = found["delta action"]["global_mm"]
        ratios[name] = own[-1] / nothing[-1]
        if not name.startswith("ideal"):
            quarter[name] = own[0] / nothing[0]
        if PPO in found:
            forms.append((found["delta action"], found[PPO]))
        for one, kept_of in ((IDENTIFIED, beaten), (PUBLISHED, published)):
            rivals = [found[m]["global_mm"][-1] for m in (one, "delta dynamics") if m in found]
            if len(rivals) == 2 and not name.startswith("ideal"):
                kept_of.append(own[-1] < min(rivals))
    head = ("target", "method", *HORIZONS, "of nothing, 1 s", "CPU-s")
    joints, diverged, parameters = _joints(runs), _diverged(runs), _parameters(runs)
    kept = {name: value for name, value in ratios.items() if not name.startswith("ideal")}
    good = f"{sum(value <= 0.6 for value in kept.values())} of {len(kept)}"
    early = f"{min(quarter.values()):.2f} to {max(quarter.values()):.2f}"
    text = f"""## Delta action beside other methods, open loop

Same logs, same windows, same score: E_g-mpjpe (mm) after 0.25, 0.5 and 1 s on an episode that nothing was fitted to.
Asked: at 1 s at most 0.6 of doing nothing, and better than identification and delta dynamics. The delta action is at
most 0.6 on {good} targets, and better than both on {sum(beaten)} of {len(beaten)} where both were measured; with
identification as in the published comparison on {sum(published)} of {len(published)}. After 0.25 s it is at {early}
of doing nothing; published methods are all alike there: the gradient form fits single steps. A ratio of 1.00 is a
correction of zero: none was found that helped on the ends of the logs. Noise (as large as the correction) and
randomisation are ways to train under, not models of a robot: their rows say how far their worlds are from it.
{diverged} {_which_form(forms)}

{parameters}

{table(head, rows)}

Which joints are corrected, root mean square in mrad:

{joints}"""
    numbers: Numbers = {"open_loop_ratio": kept, "open_loop_best": f"{sum(beaten)} of {len(beaten)}"}
    return numbers | {"open_loop_best_as_published": f"{sum(published)} of {len(published)}"}, text


def _diverged(runs: dict[str, Runs]) -> str:
    """Where delta dynamics is worse than nothing."""
    found = [one for one in _by_target(runs).values() if "delta dynamics" in one]
    worse = sum(one["delta dynamics"]["global_mm"][-1] > one["delta action"]["without"][-1] for one in found)
    if not worse:
        return ""
    return f"""Delta dynamics is worse than doing nothing on {worse} of {len(found)}: it is fitted to single steps from
recorded states, and then runs through states of its own making."""


def _parameters(runs: dict[str, Runs]) -> str:
    """How identification compares with the delta action, in both its forms, and what a delta action adds to it."""
    found = {name: one for name, one in _by_target(runs).items() if not name.startswith("ideal")}

    def wins(first: str, second: str) -> str:
        pairs = [(one[first], one[second]) for one in found.values() if first in one and second in one]
        return f"{sum(a['at_1s_mm'] < b['at_1s_mm'] for a, b in pairs)} of {len(pairs)}"

    return f"""Identification (`trueup calibrate`: delay, dry friction, gains, encoder biases, mass, contact) is better
than the delta action after 1 s on {wins("identification", "delta action")} targets: late commands and dry friction are
parameters that it has a name for. Identification as in the published comparison (gains, mass and centre of mass of the
trunk: no delay, no dry friction) is better than the delta action on
{wins(PUBLISHED, "delta action")}. A delta action on top of identification is better than identification alone on
{wins(BOTH, "identification")}. `trueup calibrate delta --baselines` names the best on the held-out data as what to
train under."""


def _which_form(forms: list[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """What the gradient form and the published one take and give, of targets where both were measured."""
    if not forms:
        return ""
    better = sum(ppo["at_1s_mm"] < own["at_1s_mm"] for own, ppo in forms)
    own, ppo = (median(one[k]["seconds"] for one in forms) for k in (0, 1))
    return f"""The published form (PPO, nothing differentiated) is better than the gradient form on {better} of
{len(forms)} targets, and takes {ppo:.0f} against {own:.0f} CPU-seconds (medians)."""


def _joints(runs: dict[str, Runs]) -> str:
    groups = ("hip", "knee", "ankle", "waist", "shoulder", "elbow", "wrist")
    rows = []
    for name, found in _by_target(runs).items():
        by = found["delta action"]["by_joint"]
        means = [[v for k, v in by.items() if group in k] for group in groups]
        rows.append((name, *(f"{1e3 * (sum(v * v for v in one) / len(one)) ** 0.5:.0f}" for one in means)))
    return table(("target", *groups), rows)


def _analytic(runs: dict[str, Runs]) -> tuple[Numbers, str]:
    run = runs["analytic"]["so101"]
    text = f"""## Analytic check

A robot whose kp is 0.65 of the simulator's needs the correction {run["wanted"]:.2f} (q* - q). From 12 s of log the
delta action learned {run["found"]:.3f} (q* - q) on a motion it had not seen; what is left of the replay error after 1 s
is {run["ratio"]:.3f} of it."""
    return {"analytic_slope": run["found"], "analytic_wanted": run["wanted"]}, text


def _data(runs: dict[str, Runs]) -> tuple[Numbers, str]:
    rows = []
    for key, run in runs["data"].items():
        name, _, case = key.partition("/")
        share = run["global_mm"][-1] / run["without"][-1]
        rows.append((name, case, *_mm(run["global_mm"]), f"{share:.2f}", f"{run['seconds']:.0f}"))
    for name, found in _by_target(runs | {"methods": runs.get("methods", {})}).items():
        if any(key.startswith(f"{name}/") for key in runs["data"]):
            run = found["delta action"]
            share = run["global_mm"][-1] / run["without"][-1]
            rows.append(
                (name, "all episodes, motion capture", *_mm(run["global_mm"]), f"{share:.2f}", f"{run['seconds']:.0f}")
            )
    text = f"""## Data needed

Error (E_g-mpjpe, mm) on the held-out episode against the seconds of one recorded episode, without motion capture (base
pose by leg odometry from encoders and IMU), with the legs corrected only, and with the net beside the linear part.

{table(("target", "learned from", *HORIZONS, "of nothing, 1 s", "CPU-s"), sorted(rows))}"""
    return {}, text


def _feedforward(runs: dict[str, Runs]) -> tuple[Numbers, str]:
    by_target: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for key, run in runs["feedforward"].items():
        target, arm, _ = key.split("/")
        by_target.setdefault(target, {}).setdefault(arm, []).append(run)
    rows = []
    for target, found in by_target.items():
        for arm in (arm for arm in _ARMS if arm in found):
            all_seeds = found[arm]
            shown = [_over(all_seeds, name) for name in ("mpjpe_mm", "global_mm")]
            falls, episodes = (sum(run[name] for run in all_seeds) for name in ("falls", "episodes"))
            stood = f"{sum(run['lasted_s'] for run in all_seeds) / len(all_seeds):.1f}"
            home = [f"{one['before_mm']:.1f} → {one['after_mm']:.1f}" for one in all_seeds if "before_mm" in one]
            seconds = f"{median(run['seconds'] for run in all_seeds):.0f}"
            rows.append(
                (
                    target,
                    arm,
                    str(len(all_seeds)),
                    *shown,
                    f"{falls} of {episodes}",
                    stood,
                    *(home[:1] or [""]),
                    seconds,
                )
            )
    head = ("target", "learned in", "seeds", "from the root, mm", "in the world, mm", "falls", "stood for, s",
            "there, before → after, mm", "CPU-s")  # fmt: skip
    others = {name: found for name, found in by_target.items() if ":" not in name}
    own = {name: found for name, found in by_target.items() if ":" in name}
    numbers: Numbers = {"closed_loop_wins": _won_of(others), "closed_loop_wins_own_policy": _won_of(own)}
    steps, episodes = (max(run[name] for run in runs["feedforward"].values()) for name in ("steps", "episodes"))
    text = f"""## Closed loop: a feedforward that is learned in the corrected simulator

`trueup policy feedforward`: the policy's network stays as it is. It runs its motion from the first row to the last in
16 copies at once, and what each joint lacks at each row is added, smoothed, to the targets of that row (iterative
learning control), ten times over: for the dance {steps:,} control steps. The round with the smallest error in the
simulator where it learns is kept. Then it acts on the target, {episodes} episodes for each seed, without what corrected
the simulator.

`vanilla` is the policy as it came. `nominal` learned in the simulator as it is; `noise` under action noise as large as
the correction; `ranges` under the task's randomisation and pushes; `published` with the gains, mass and centre of mass
that identification found in the target's logs, `identified` with delay, dry friction and encoder biases too; `delta`
under the delta action; `both` under one on top of what was identified. Median over seeds; behind a stroke the worst.
Where the robot falls, errors are those until then.

Better: fewer falls, or as many and stood longer if there were any, else a smaller error from the root. **`delta` is
better than `vanilla`, `noise`, `ranges` and `identified` together on {_won_of(others)} targets** (asked: 8 of 10):
{_each_arm(others)}. {_own_text(own)}

{table(head, rows)}"""
    return numbers, text


def _over(runs: list[dict[str, Any]], name: str) -> str:
    values = [run[name] for run in runs]
    one = f"{median(values):.1f}" if name == "mpjpe_mm" else f"{median(values):.0f}"
    return one if len(values) == 1 else f"{one} / {_mm([max(values)])[0]}"


def _summed(runs: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Smaller is better: share of falls, minus the seconds that it stood where it fell, and the median error."""
    falls = sum(run["falls"] for run in runs) / sum(run["episodes"] for run in runs)
    stood = sum(run["lasted_s"] for run in runs) / len(runs) if falls else 0.0
    return falls, -stood, median(run["mpjpe_mm"] for run in runs)


def _won_of(by_target: dict[str, dict[str, list[dict[str, Any]]]]) -> str:
    whole = [found for found in by_target.values() if {*_RIVALS, "delta"} <= set(found)]
    won = sum(all(_summed(found["delta"]) < _summed(found[arm]) for arm in _RIVALS) for found in whole)
    return f"{won} of {len(whole)}"


def _each_arm(by_target: dict[str, dict[str, list[dict[str, Any]]]]) -> str:
    told = []
    for arm in (arm for arm in _ARMS if arm != "delta"):
        pairs = [(found["delta"], found[arm]) for found in by_target.values() if {arm, "delta"} <= set(found)]
        if pairs:
            told.append(f"than `{arm}` on {sum(_summed(a) < _summed(b) for a, b in pairs)} of {len(pairs)}")
    return ", ".join(told)


def _own_text(own: dict[str, dict[str, list[dict[str, Any]]]]) -> str:
    if not own:
        return ""
    return f"""With our own policy for the walk ("walk": its own logs, its own delta actions) on {_won_of(own)}:
{_each_arm(own)}."""


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
    against = {arm: [_wins(one, arm) for one in by_target.values() if {arm, "delta"} <= set(one)] for arm in shown_arms}
    whole = [one for one in by_target.values() if all(arm in one for arm in (*_RIVALS, "delta"))]
    wins = sum(all(_wins(one, arm) for arm in _RIVALS) for one in whole)
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
    arms = ("nominal", "ranges", "identified", "delta")
    gains: dict[str, list[float]] = {arm: [] for arm in arms}
    for found in by_target.values():
        if "vanilla" in found and not found["vanilla"]["falls"]:
            for arm in arms:
                if arm in found and not found[arm]["falls"]:
                    gains[arm].append(1.0 - found[arm]["mpjpe_mm"] / found["vanilla"]["mpjpe_mm"])
    told = ", ".join(f"`{arm}` {100 * median(found):.1f} % ({len(found)})" for arm, found in gains.items() if found)
    return f"""Taken off the error of `vanilla` (median; number of targets where neither fell): {told}. What `nominal`
gains is not knowledge of the target."""


def _wins(found: dict[str, dict[str, Any]], arm: str) -> bool:
    """Whether the delta action has fewer falls, or as many and a smaller error."""
    own, other = found["delta"], found[arm]
    return (own["falls"], own["mpjpe_mm"]) < (other["falls"], other["mpjpe_mm"])


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
