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
Runs = dict[str, dict[str, Any]]


def sections(runs: dict[str, Runs]) -> dict[str, tuple[Numbers, str]]:
    """Numbers and text by part, of the parts that have been measured."""
    makers = {"headroom": _headroom, "delta": _delta, "analytic": _analytic, "data": _data}
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

{joints}
{_own_walk(runs)}"""
    numbers: Numbers = {"open_loop_ratio": kept, "open_loop_best": f"{sum(beaten)} of {len(beaten)}"}
    return numbers | {"open_loop_best_as_published": f"{sum(published)} of {len(published)}"}, text


def _own_walk(runs: dict[str, Runs]) -> str:
    """The same with a policy of our own and another motion, as far as it was measured."""
    if not runs.get("methods walk"):
        return ""
    rows, good = [], []
    for name, found in _by_target({"methods": runs["methods walk"]}).items():
        nothing, own = found["delta action"]["without"][-1], found["delta action"]["global_mm"][-1]
        other = found.get(IDENTIFIED)
        good.append(own <= 0.6 * nothing)
        fitted = _mm([other["global_mm"][-1]])[0] if other else ""
        rows.append((name, *_mm([nothing, own]), f"{own / nothing:.2f}", fitted))
    head = ("target", "nothing", "delta action", "of nothing", "identification")
    return f"""
With logs of our own policy for the walk (88 s or 24 episodes, most with noise as above), mm after 1 s: at most 0.6 of
nothing on {sum(good)} of {len(good)} targets.

{table(head, rows)}"""


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
