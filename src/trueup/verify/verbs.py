"""The config that `tu.verify` shares with `trueup verify`; nothing heavy is imported before something runs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal

import tyro

from trueup.core.files import OutFolderLike, PathLike
from trueup.core.verb_package import called_with

if TYPE_CHECKING:
    from trueup.verify.verify import Verified


@dataclass(frozen=True)
class VerifyVerb:
    """Check whether a policy may run on the robot, and write a certificate.

    In: a bundle (`trueup export`, `trueup policy import`); with --select a run. Out: BUNDLE.certificate.json, bound to
    the bundle's hash, and a folder with a page; exit code 0 if it passed, 1 if something blocks. Results are kept in
    the folder: started again, it continues.
    """

    bundle: tyro.conf.Positional[PathLike]  # The bundle; with --select the folder of a run.
    _: KW_ONLY
    params: PathLike | None = None
    """Calibration of the robot: every trial draws what was fitted from its posterior."""
    scenarios: str | None = None  # A suite's file or the name of a shipped one; default: as suits the task.
    only: tuple[str, ...] = ()  # Only these scenarios; the others count as missing, so the policy cannot pass.
    trials: int = 100  # Of each scenario.
    second: Literal["sapien", "none"] = "sapien"  # Second engine.
    worlds: int = 60  # Number of simulated robots in the prediction.
    threads: int = 0  # Physics threads; 0: all cores.
    seed: int = 0  # Of everything random.
    films: bool = True  # Film the worst trial of every scenario.
    out: OutFolderLike | None = None  # Folder of page and results; default: BUNDLE.verified.
    select: bool = False
    """Try the snapshots of a run in a short suite, export the best one (to RUN/best.bundle) and verify it."""


def run(verb: VerifyVerb) -> Verified:
    """Ask the gate's questions to a bundle and write its certificate.

    bundle    folder of a bundle
    params    folder of a calibration of the robot: trials are draws from its posterior

    All options are the fields of `VerifyVerb`, which says what they mean, and the flags of `trueup verify`; --select is
    the command line's (`tu.select` in Python).
    """
    from trueup.verify.verify import verify as verify_bundle

    return verify_bundle(verb)


verify = called_with(VerifyVerb, run)
