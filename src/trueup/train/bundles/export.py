"""Export: from a run to a bundle, checked against PyTorch and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from trueup.core.arrays import sha256_of_file
from trueup.core.checkpoint import Checkpoint, read_checkpoint
from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import PolicyBundle, write_bundle
from trueup.policy.bundle.manifest import MANIFEST
from trueup.policy.bundle.passport import PolicyOrigin
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.runner import PolicyRunner
from trueup.train.bundles.measure import goal_facts, make_passport, measure_ranges
from trueup.train.bundles.parity import RestartablePolicy, check_parity
from trueup.train.bundles.torch_policy import TorchPolicy
from trueup.train.config import RunCfg
from trueup.train.folder import RunFolder
from trueup.train.train import run_env
from trueup.world.fitted.calibration import PARAMS_FILE, read_calibration

_SIMULATIONS = 48


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A bundle, and the largest difference of PyTorch and ONNX Runtime to our own runner."""

    bundle: PolicyBundle
    parity: dict[str, float]
    notes: tuple[str, ...] = ()


def export_run(
    run: str | Path, out: str | Path, *, checkpoint: int | None = None, seconds: float = 10.0, seed: int = 0
) -> Exported:
    """Write the policy of a run as a bundle.

    checkpoint  iteration of a checkpoint or snapshot; None: the newest
    seconds     to run it in its task, with the run's randomisation, for the training range of every observation
    """
    folder = RunFolder(run)
    cfg, (place, found) = folder.config(), _checkpoint(folder, checkpoint)
    net = folder.policy_in(found)
    if net.spec.kind == "privileged":
        raise TrueupError(
            "this policy needs the hidden factors, which no robot knows: train a student (--teacher) and export that",
            file=folder.path,
        )
    env = run_env(replace(cfg, seed=seed), _SIMULATIONS, threads=1)
    net.check(env.nactor, env.naction)
    ranges, commands = measure_ranges(env, PolicyRunner(net, env.nenv), seconds)
    spec = msgspec.structs.replace(env.policy_spec(), net=net.spec)
    origin = _origin(folder, cfg, place, found)
    passport = make_passport(env, spec, goal_facts(env, commands), origin, ranges)
    bundle = write_bundle(out, passport, policy_onnx(net))
    return Exported(bundle=bundle, parity=checked(bundle, {"torch": lambda nrow: TorchPolicy(net, nrow)}))


def checked(bundle: PolicyBundle, others: dict[str, Callable[[int], RestartablePolicy]]) -> dict[str, float]:
    """Check parity; on failure the bundle is removed."""
    try:
        return check_parity(bundle, others)
    except BaseException:
        (bundle.path / MANIFEST).unlink(missing_ok=True)
        raise


def _checkpoint(folder: RunFolder, iteration: int | None) -> tuple[Path, Checkpoint]:
    """A whole checkpoint and its folder."""
    if iteration is None:
        for place in folder.checkpoints.folders():
            try:
                return place, read_checkpoint(place)
            except TrueupError:
                continue
        return folder.path, folder.newest()  # refuses, and says why
    places = [part.root / f"{iteration:08d}" for part in (folder.checkpoints, folder.snapshots)]
    there = [place for place in places if place.is_dir()]
    if not there:
        known = sorted({int(path.name) for part in (folder.checkpoints, folder.snapshots) for path in part.folders()})
        raise TrueupError(
            f"has no checkpoint of iteration {iteration} (it has {', '.join(map(str, known)) or 'none'})",
            file=folder.path,
        )
    return there[0], read_checkpoint(there[0])


def _origin(folder: RunFolder, cfg: RunCfg, place: Path, found: Checkpoint) -> PolicyOrigin:
    """Hashes of all inputs of the policy."""
    files = {"config.json": sha256_of_file(folder.path / "config.json")}
    files |= {f"{place.parent.name}/{place.name}": sha256_of_file(place / "arrays.safetensors")}
    notes = [] if cfg.teacher is None else [f"student of {Path(cfg.teacher).name}"]
    if cfg.delta is not None:
        notes.append(
            f"trained under the delta action {Path(cfg.delta).name}, which belongs to the simulator: not part of it"
        )
    if cfg.params is not None:
        fit = Path(cfg.params)
        files["calibration"] = sha256_of_file(fit / PARAMS_FILE if fit.is_dir() else fit)
        logs = read_calibration(fit).provenance.get("logs")
        for k, log in enumerate(logs if isinstance(logs, list) else []):
            files[f"calibration/log{k}"] = str(log.get("sha256", ""))
    if cfg.actuator is not None:
        files |= {
            f"actuator/{path.name}": sha256_of_file(path) for path in sorted(Path(cfg.actuator).glob("actuator.*"))
        }
    return PolicyOrigin(
        format="trueup",
        run=folder.path.resolve().name,
        steps=int(found.facts.get("steps", 0)),
        files=files,
        notes=tuple(notes),
    )
