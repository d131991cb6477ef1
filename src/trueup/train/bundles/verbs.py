"""`tu.export`, `tu.import_policy` and `tu.feedforward`, and their configs, shared with the command line."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from trueup.core.files import OutFolderLike, PathLike
from trueup.core.verb_package import called_with

if TYPE_CHECKING:  # Python takes objects where the command line takes their files
    from trueup.policy.foreign.layout import Layout
    from trueup.train.bundles.export import Exported
    from trueup.train.bundles.feedforward import Feedforward

    LayoutLike = str | Path | Layout
else:
    LayoutLike = Path


@dataclass(frozen=True)
class ExportPolicyVerb:
    """Write the policy of a run as a bundle: network, passport and proof that they belong together.

    In: a run's folder. Out: NAME.bundle with policy.onnx, spec.json (the passport), golden.npz and manifest.json,
    checked against PyTorch and ONNX Runtime. A robot needs NumPy to run it.
    """

    run: tyro.conf.Positional[PathLike]  # Folder of a run.
    _: KW_ONLY
    out: OutFolderLike  # Folder to write, e.g. walk.bundle.
    checkpoint: int | None = None  # Iteration of the checkpoint or snapshot to take; default: the newest.
    seconds: float = 10.0
    """Simulated time, randomised as in training, over which the range of every observation is measured, s."""
    seed: int = 0  # Of that measurement.


def run_export(verb: ExportPolicyVerb) -> Exported:
    """Write the policy of a run as a bundle (see `ExportPolicyVerb`)."""
    from trueup.train.bundles.export import export_run

    return export_run(verb.run, verb.out, checkpoint=verb.checkpoint, seconds=verb.seconds, seed=verb.seed)


export = called_with(ExportPolicyVerb, run_export)


@dataclass(frozen=True)
class ImportPolicyVerb:
    """Import a policy that was trained elsewhere as a bundle.

    In: its network (ONNX, or TorchScript where torch is installed), the layout that its authors deploy it with
    (rl_sar's config.yaml, unitree_rl_lab's deploy.yaml, a layout TOML; none for an ONNX file whose metadata say it)
    and the robot. Out: NAME.bundle, as `trueup export` writes it. An error names each option that a layout lacks.
    """

    net: tyro.conf.Positional[PathLike]  # Network: .onnx, or TorchScript (.pt).
    _: KW_ONLY
    out: OutFolderLike  # Folder to write, e.g. theirs.bundle.
    robot: str  # Robot that it was trained for: a built-in name, or a folder of your own.
    layout: LayoutLike | None = None  # Layout file; default: what the network's own metadata say.
    task: str | None = None  # Task that it is run in; default: the built-in one that fits, where there is exactly one.
    joints: tuple[str, ...] = ()
    """Joint names in the SDK's order, for layouts that number joints only (deploy.yaml); known of go2 and g1."""
    base: PathLike | None = None  # rl_sar's base.yaml; default: beside the layout or one folder up.
    hz: float | None = None  # Control rate, for layouts that leave it open (metadata of mjlab and Isaac Lab).
    torque: tuple[float, ...] = ()
    """Torque limits it was trained with, N m: one, or one a joint; default: the layout's, or the robot's."""
    seconds: float = 10.0
    """Simulated time, randomised, over which the range of every observation is measured, s; 0: not measured."""
    seed: int = 0  # Of that measurement.


def run_import(verb: ImportPolicyVerb) -> Exported:
    """Import a policy that was trained elsewhere as a bundle (see `ImportPolicyVerb`)."""
    from trueup.train.bundles.import_policy import import_net

    return import_net(verb)


import_policy = called_with(ImportPolicyVerb, run_import)


@dataclass(frozen=True)
class FeedforwardVerb:
    """Learn offsets that a policy's targets lack to follow its motion, in the corrected simulator, by repetition.

    In: a bundle whose policy follows one motion, and what corrects the simulator (--delta, --params, --actuator). Out:
    the same network in a new bundle whose targets have offsets by the row of the motion. Neither the network nor its
    observations change. The round with the smallest error is kept; Ctrl-C keeps the best so far.
    """

    policy: tyro.conf.Positional[PathLike]  # Bundle of a policy that follows a motion.
    _: KW_ONLY
    out: OutFolderLike  # Bundle to write, e.g. trued.bundle.
    task: str | None = None  # Task with the motion, e.g. g1-track:dance.npz; default: the policy's own.
    delta: PathLike | None = None  # Folder of a delta action (`trueup calibrate delta`) that corrects the simulator.
    params: PathLike | None = None  # Folder of a calibration; every copy has its own draw.
    actuator: PathLike | None = None  # Folder of a learned actuator.
    randomize: bool = False  # Draw masses, friction, delays and so on from the task's ranges, and push.
    rounds: int = 10  # Corrections, each after one run of the whole motion.
    nenv: int = 16  # Copies that run it, whose errors are averaged.
    threads: int = 0  # Physics threads; 0: all cores.
    seed: int = 0  # Of sensor noise, starts and draws.


def run_feedforward(verb: FeedforwardVerb) -> Feedforward:
    """Learn offsets with which a policy follows its motion better (see `FeedforwardVerb`)."""
    from trueup.train.bundles.feedforward import learn_feedforward

    return learn_feedforward(verb)


feedforward = called_with(FeedforwardVerb, run_feedforward)
