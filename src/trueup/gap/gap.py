"""`gap`: from logs to ranked causes of the difference between simulator and robot.

Commands of the log are replayed in the simulator from measured states of short windows. Each hypothesis is a change of
the simulator, of the log or of the policy's side; its size is estimated on half of the windows and judged on the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.verb_package import Shown
from trueup.data.files import Logs, read_logs
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.gap.advice import as_cause, refit_request
from trueup.gap.causes.distances import distances
from trueup.gap.causes.hypotheses import HYPOTHESES, Hypothesis
from trueup.gap.causes.policy_side import try_policy
from trueup.gap.causes.recordings import check_bundle, disagreement, in_order, names_of, on_one_clock, robot_of
from trueup.gap.causes.search import CauseSearch, Tested
from trueup.gap.causes.sensors import try_state_estimate
from trueup.gap.causes.structure import try_rate, try_structure
from trueup.gap.chance import by_chance
from trueup.gap.config import LEAST_WINDOWS, GapCfg
from trueup.gap.decide import LEAST, Ranked, best_of_each, rank, rank_alone, suspects
from trueup.gap.horizons import horizons
from trueup.gap.mismatch import Model, losses, weighed
from trueup.gap.result import CausePair, GapResult
from trueup.gap.windows import PAST_S, LogWindows, cut, has_odometry, is_walking, joined
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import trunk_body
from trueup.world.fitted.calibration import Calibration, read_calibration

_LOG = logging.getLogger(__name__)
_WINDOW_S = {False: 0.3, True: 0.2}
_JUDGED = 4  # causes that explain most: what chance explains of them is searched, too
_LEAD = 0.5  # of the rows: targets of a soft servo are beyond its joint's range less often
_GAIN_OF_PAIR = 0.05  # of the mismatch that a second cause must add
Progress = Callable[[float], None]


@dataclass(frozen=True, kw_only=True)
class Gap(Shown):
    """A diagnosis: `table()`, `report("gap.html")`, `result` as data."""

    result: GapResult

    def write(self, folder: str | Path) -> Path:
        """Write FOLDER/result.json, and refit.json where something can be fitted."""
        return self.result.write(folder)


def gap(
    robot: Robot | str | None,
    logs: Logs,
    cfg: GapCfg | None = None,
    *,
    params: Calibration | str | Path | None = None,
    bundle: str | Path | None = None,
    mapping: str | None = None,
    out: str | Path = "gap",
    progress: Progress | None = None,
) -> Gap:
    """Diagnose logs (or files of them) of a robot against its nominal or calibrated model.

    params  calibration that is diagnosed; None: the nominal model
    bundle  policy that ran: it is computed again on the log; of a log without commands, distributions are compared with
            its simulated runs
    out     folder that the fixing commands name; nothing is written here
    """
    cfg, tell = cfg or GapCfg(), progress or (lambda done: None)
    names, opened = names_of(logs), None if bundle is None else load_bundle(bundle)
    read = read_logs(logs, mapping)
    if not read:
        raise TrueupError("no log was given to diagnose")
    robot = load_robot(robot if robot is not None else robot_of(read[0], opened))
    fit = read_calibration(params) if isinstance(params, str | Path) else params
    as_read = in_order(robot, read)
    if opened is not None:
        check_bundle(opened, robot)
    ordered = on_one_clock(as_read)
    if "target_pos" not in ordered[0]:
        far = {} if opened is None else distances(robot, ordered[0], opened, fit, seed=cfg.seed, threads=cfg.threads)
        return Gap(result=_distances_alone(robot, names, read, far))
    walking = cfg.base == "free" or (cfg.base == "auto" and is_walking(robot, ordered[0]))
    model = Model(robot=robot, params=fit, walking=walking, threads=cfg.threads)
    ordered, cut_off = _as_heard(model, ordered, cfg)
    search, tested = _test_all(model, ordered, cfg, tell)
    held, recording = search.windows.held, search.windows.log
    each = best_of_each(tested, held)
    found = suspects(each, held, cfg.seed, recording)
    apart = [one for one in suspects(each, held, cfg.seed) if one not in found][:1]
    chance = by_chance(search, [one.cause for one in found[:_JUDGED]], cfg.seed)
    ranked = rank(found[:_JUDGED], chance, held, cfg.seed, recording)
    tell(0.85)
    beside, told = _policy_side(opened, as_read, cfg.seed)
    pairs = _pairs(search, ranked, cfg) if cfg.pairs else []
    tell(0.95)
    rivals = [one.tested.cause for one in ranked if one.tied]
    files = names if mapping is None else (*names, "--mapping", mapping)
    hashes = tuple(log.sha256 for log in read)
    base = "free" if walking else "fixed"
    trunk = trunk_body(model.sim(search.windows.count, search.windows.rate_hz, search.windows, 1).model, robot)
    result = GapResult(
        robot=robot.spec.name,
        base=base,
        logs=names,
        hashes=hashes,
        params=str(params) if isinstance(params, str | Path) else "given" if params else None,
        windows=search.windows.count,
        seconds=float(sum(log.time[-1] - log.time[0] for log in ordered)),
        nothing_wrong=not ranked and not beside,
        causes=tuple(
            as_cause(one, robot.spec.name, files, str(out), base, rivals if ranked and one is ranked[0] else ())
            for one in _in_order(beside, ranked)
        ),
        pairs=tuple(pairs),
        tried={one.cause: one.explained(held) for one in each} | {one.tested.cause: one.explained for one in beside},
        horizons=tuple(horizons(model, ordered, search.windows)) if cfg.horizons else (),
        distances={},
        disagreement=disagreement(apart[0], search.windows, names) if apart else "",
        notes=(*_notes(ordered, walking, any(one.tested.fits for one in ranked)), *cut_off, *told),
        refit=refit_request(ranked, robot.spec.name, base, names, hashes, trunk),
    )
    tell(1.0)
    return Gap(result=result)


def _windows(model: Model, logs: Sequence[Log], cfg: GapCfg, rate_hz: float) -> LogWindows:
    """Windows of all logs, with as many rows as at `rate_hz` whatever the rates of the logs."""
    slower = rate_hz / rate_of(logs[0])
    length_s, past_s = (cfg.window_s or _WINDOW_S[model.walking]) * slower, PAST_S * slower
    each = max(4, cfg.max_windows // len(logs))
    found = joined(
        [cut(model.robot, log, walking=model.walking, window_s=length_s, most=each, past_s=past_s) for log in logs]
    )
    if found.count < LEAST_WINDOWS:
        seconds = sum(float(log.time[-1] - log.time[0]) for log in logs)
        raise TrueupError(
            f"{seconds:.2f} s of log hold {found.count} windows of {length_s:.2g} s, half of which judge what others "
            f"estimate, and {LEAST_WINDOWS} are needed: record {LEAST_WINDOWS * length_s:.0f} s or more"
        )
    return found


def _as_heard(model: Model, logs: list[Log], cfg: GapCfg) -> tuple[list[Log], list[str]]:
    """The logs with commands clipped to the joint limits, where a robot that clips explains them better.

    Policies on soft servos send targets beyond the joint limits; many robots clip these, and a log
    of a policy's output then has commands that no motor received: replayed, they look like weak motors. Commands
    beyond a joint's range most of the time have another reason: a wrong joint, sign or zero.
    """
    low, high = model.robot.spec.position_low, model.robot.spec.position_high
    inside = [np.clip(log["target_pos"], low, high) for log in logs]
    outside = [np.mean(one != log["target_pos"], axis=0) for one, log in zip(inside, logs, strict=True)]
    beyond = float(np.mean(outside))
    if beyond == 0.0 or np.max(outside) > _LEAD:
        return logs, []
    cut_off = [replace(log, signals=log.signals | {"target_pos": one}) for one, log in zip(inside, logs, strict=True)]
    rate = rate_of(logs[0])
    as_told, as_cut = (float(losses(model, _windows(model, some, cfg, rate), [{}]).sum()) for some in (logs, cut_off))
    if as_cut > (1.0 - LEAST) * as_told:
        return logs, []
    note = (
        f"{beyond:.1%} of the commands lie beyond the joints' range: the robot cut them off there, as the replay does"
    )
    return cut_off, [f"{note} (explains {1.0 - as_cut / as_told:.0%} of the mismatch)"]


def _test_all(model: Model, logs: Sequence[Log], cfg: GapCfg, tell: Progress) -> tuple[CauseSearch, list[Tested]]:
    rate = rate_of(logs[0])

    windows = weighed(model, _windows(model, logs, cfg, rate))

    def windows_of(some: Sequence[Log]) -> LogWindows:
        return replace(_windows(model, some, cfg, rate), weight=windows.weight)

    search = CauseSearch(model, windows)
    chosen = applicable(model)
    tested = []
    for k, one in enumerate(chosen):
        _LOG.info("testing %s", one.cause)
        tested.append(search.test(one))
        tell(0.6 * (k + 1) / len(chosen))
    if cfg.wiring:
        before = search.before.sum(axis=1)
        _LOG.info("testing wiring and clock")
        tested += try_structure(model, windows, before)
        tell(0.72)
        tested.append(try_rate(model, logs, windows_of, before))
        estimate = try_state_estimate(model, logs, windows_of, before) if model.walking else None
        tested += [estimate] if estimate is not None else []
    tell(0.78)
    return search, tested


def applicable(model: Model) -> list[Hypothesis]:
    """Hypotheses that a log of this kind can test."""
    arm = not model.robot.spec.base.floating
    return [one for one in HYPOTHESES if not one.on_ground or model.walking or (arm and one.cause == "payload")]


def _pairs(search: CauseSearch, ranked: Sequence[Ranked], cfg: GapCfg) -> list[CausePair]:
    """Share that a second change explains beside the first, on held-out windows; only for changes of parameters."""
    if not ranked or not ranked[0].tested.values:
        return []
    first, held = ranked[0].tested, search.windows.held
    _LOG.info("looking for a second cause")
    given = CauseSearch(search.model, search.windows, first.values)
    whole = first.before[held].sum()
    others = [one for one in applicable(search.model) if one.cause != first.cause]
    out = []
    for second in best_of_each([given.test(one) for one in others], held):
        adds = float((first.after[held] - second.after[held]).sum() / whole)
        if second.matters and adds > _GAIN_OF_PAIR:
            out.append(CausePair(names=(first.cause, second.cause), explained=first.explained(held) + adds, adds=adds))
    return sorted(out, key=lambda one: -one.adds)


def _policy_side(bundle: PolicyBundle | None, logs: Sequence[Log], seed: int) -> tuple[list[Ranked], list[str]]:
    """Causes on the policy's side, and a note: of the first log on which it can be computed again."""
    if bundle is None:
        return [], []
    _LOG.info("computing the policy again")
    note = ""
    for log in logs:
        found = try_policy(bundle, log)
        note = note or found.note
        if len(found.held):
            return [rank_alone(one, found.held, seed) for one in found.causes], [found.note]
    return [], [note]


def _in_order(beside: Sequence[Ranked], ranked: Sequence[Ranked]) -> list[Ranked]:
    """Causes on the policy's side are exact and come first; but a wrong clock also changes the policy rate."""
    clock = any(one.tested.cause == "wrong rate" for one in ranked)
    later = [one for one in beside if clock and one.tested.cause == "policy rate"]
    return [*(one for one in beside if not later or one is not later[0]), *ranked, *later]


def _distances_alone(robot: Robot, names: tuple[str, ...], logs: Sequence[Log], found: dict[str, float]) -> GapResult:
    """Result for a log without commands: what differs, not why."""
    if not found:
        raise TrueupError(
            "the log has no commands (target_pos), so nothing can be replayed: with --bundle, the policy that ran, "
            "its distributions are compared"
        )
    why = "without commands in the log only distributions are compared: they say what differs, not why"
    return GapResult(
        robot=robot.spec.name, base="free", logs=names, hashes=tuple(log.sha256 for log in logs), params=None,
        windows=0, seconds=float(sum(log.time[-1] - log.time[0] for log in logs)), nothing_wrong=False, causes=(),
        pairs=(), tried={}, horizons=(), distances=found, notes=(why,),
    )  # fmt: skip


def _notes(logs: Sequence[Log], walking: bool, fits: bool) -> list[str]:
    out = []
    if fits and len(logs) == 1:
        out.append("one recording: what explains this motion may not explain another; of several, given together, a "
                   "cause must explain each")  # fmt: skip
    if walking:
        odometry = all(has_odometry(log) for log in logs)
        out.append(f"base motion from {'odometry' if odometry else 'encoders and IMU alone, on flat ground'}")
    return out
