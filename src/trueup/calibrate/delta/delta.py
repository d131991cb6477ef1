"""`calibrate_delta`: learn a delta action from logs, and say how far it brings the simulator."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from trueup.calibrate.data.logs import check
from trueup.calibrate.delta.config import DeltaCfg
from trueup.calibrate.delta.fit_net import fit_net
from trueup.calibrate.delta.score import HORIZONS_S, HorizonErrors, score, windows_of
from trueup.calibrate.delta.shooting import DeltaShooting, Rows
from trueup.calibrate.delta.states import state_tracks
from trueup.calibrate.fit.fit import Progress
from trueup.calibrate.score_logs import sim_of
from trueup.core.documents import write_json
from trueup.core.errors import TrueupError
from trueup.data.files import Logs, read_logs
from trueup.models.delta_net import DeltaNet, DeltaSpec, save_delta
from trueup.robot.load import Robot, load_robot
from trueup.world.fitted.calibration import read_calibration

RESULT_FILE = "result.json"
_MARGIN = 0.1  # of the width of the data's range


@dataclass(frozen=True, kw_only=True)
class DeltaResult:
    """A delta action with its errors on the held-out ends of the logs, and those of the simulator without it."""

    net: DeltaNet
    without: HorizonErrors
    corrected: HorizonErrors
    rounds: tuple[HorizonErrors, ...]
    windows: int
    notes: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Global body error at the longest horizon over that without a correction."""
        return self.corrected.global_mm[-1] / max(self.without.global_mm[-1], 1e-9)


def calibrate_delta(
    robot: Robot | str,
    logs: Logs,
    cfg: DeltaCfg | None = None,
    *,
    params: str | Path | None = None,
    mapping: str | None = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> DeltaResult:
    """Learn the correction of joint targets under which the simulator does what the robot did.

    Simulations start in recorded states and play the recorded commands (`params`: in a calibrated simulator). Each
    round differentiates the simulator along the logs and fits the correction through it (`fit_net`); it is kept if the
    bodies are closer to the recorded ones on the held-out end of every log.
    """
    robot, cfg, report = load_robot(robot), cfg or DeltaCfg(), progress or (lambda done: None)
    read = read_logs(logs, mapping)
    notes = list(check(robot, read, refuse=False))
    fit = None if params is None else read_calibration(params)
    shooting = DeltaShooting(
        robot,
        state_tracks(robot, read, cfg),
        None if fit is None else fit.apply,
        None if fit is None else sim_of(robot, fit),
    )
    train, held = (0.0, 1.0 - cfg.holdout), (1.0 - cfg.holdout, 1.0)
    scored = windows_of(shooting, held)
    if not len(scored):
        need = max(HORIZONS_S) + 0.1
        told = f"the last {cfg.holdout:.0%} of a log must last {need:.1f} s: record {need / cfg.holdout:.0f} s or more"
        raise TrueupError(f"these logs are too short to score a delta action: {told}")
    net = best = _blank(shooting, _starts(shooting, train, cfg, max(cfg.horizons)), cfg)
    without = score(shooting, None, scored)
    rounds: list[HorizonErrors] = []
    lowest = without
    for k in range(cfg.rounds):
        steps = cfg.horizons[min(k, len(cfg.horizons) - 1)]
        starts = _starts(shooting, train, cfg, steps)
        data = shooting.linearise(net, starts, steps, lambda done, k=k: report((k + 0.8 * done) / cfg.rounds))  # type: ignore[misc]
        weight = 1.0 / np.maximum(np.sqrt(np.mean(data.error**2, axis=0)), 1e-6)
        net = fit_net(net, data, weight, cfg)
        rounds.append(score(shooting, net, scored))
        if _badness(rounds[-1]) < _badness(lowest):
            best, lowest = net, rounds[-1]
        report((k + 1) / cfg.rounds)
    if not best.linear.any():
        notes.append("no correction brought the simulator closer to the held-out part: the delta action is zero")
    result = DeltaResult(
        net=best, without=without, corrected=lowest, rounds=tuple(rounds), windows=len(scored), notes=tuple(notes)
    )
    if folder is not None:
        _write(result, Path(folder), cfg)
    return result


def _badness(errors: HorizonErrors) -> float:
    """What rounds are chosen by: global body errors of all horizons, each of the same weight."""
    return float(np.sum(np.log(np.maximum(errors.global_mm, 1e-6))))


def _starts(shooting: DeltaShooting, part: tuple[float, float], cfg: DeltaCfg, steps: int) -> Rows:
    rows = shooting.tracks.starts(steps, part)
    rng = np.random.default_rng(cfg.seed)
    return np.sort(rng.permutation(rows)[: cfg.windows])


def _blank(shooting: DeltaShooting, starts: Rows, cfg: DeltaCfg) -> DeltaNet:
    """A delta action of zero with the range and the normalisation of the data."""
    spec = shooting.robot.spec
    unknown = sorted(set(cfg.joints) - set(spec.joint_names))
    if unknown:
        raise TrueupError(f"{spec.name} has no joints {unknown}; it has {', '.join(spec.joint_names)}", place="joints")
    corrected = tuple(k for k, name in enumerate(spec.joint_names) if not cfg.joints or name in cfg.joints)
    made = DeltaSpec(
        robot=spec.name,
        joint_names=spec.joint_names,
        default_pose=tuple(spec.default_pose.tolist()),
        corrected=corrected,
        base=shooting.base is not None,
        rate_hz=shooting.tracks.rate_hz,
        limit_rad=cfg.limit_rad,
    )
    zero = np.zeros(made.ninput, np.float32)
    net = DeltaNet(
        spec=made,
        linear=np.zeros((len(corrected), made.ninput), np.float32),
        layers=(),
        mean=zero,
        std=zero + 1.0,
        low=zero,
        high=zero,
    )
    x = shooting.inputs(net, starts)
    wide = _MARGIN * np.ptp(x, axis=0) + 1e-6
    return DeltaNet(
        spec=made,
        linear=net.linear,
        layers=(),
        mean=zero,  # no input, no correction
        std=np.maximum(np.sqrt(np.mean(x**2, axis=0)), 1e-4).astype(np.float32),
        low=(x.min(axis=0) - wide).astype(np.float32),
        high=(x.max(axis=0) + wide).astype(np.float32),
    )


def _write(result: DeltaResult, folder: Path, cfg: DeltaCfg) -> None:
    save_delta(result.net, folder)
    told = {
        "horizons_s": HORIZONS_S,
        "without": result.without._asdict(),
        "corrected": result.corrected._asdict(),
        "rounds": [one._asdict() for one in result.rounds],
        "ratio": result.ratio,
        "windows": result.windows,
        "notes": result.notes,
        "config": asdict(cfg),
    }
    write_json(folder / RESULT_FILE, told)
