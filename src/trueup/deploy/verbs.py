"""The config that `tu.deploy` shares with `trueup deploy`; nothing heavy is imported before something runs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal

import tyro

from trueup.core.files import OutFolderLike, PathLike
from trueup.core.verb_package import called_with
from trueup.hardware.guard.cfg import GuardCfg

if TYPE_CHECKING:
    from trueup.deploy.deploy import Deployed


@dataclass(frozen=True)
class DeployVerb:
    """Run a policy on a robot or its twin, behind the motor guard, one rung of the ladder at a time.

    In: a bundle with its certificate (`trueup verify`) and a driver. Out: a folder with policy.rows (everything the
    policy computed), the guard's recording and a page; and the record of the rung beside the bundle. Rungs are replay,
    shadow, hang, ground and full; each needs those below it. Exit code 0: done and passed, 1: done, not passed, 2:
    refused, 3: stopped by a guard, a monitor or the operator. Keys: W A S D or arrows, Q E, X to stand still, space is
    the emergency stop, Esc or Ctrl-C ends.
    """

    bundle: tyro.conf.Positional[PathLike]  # The bundle (`trueup export`, `trueup policy import`).
    _: KW_ONLY
    driver: str | None = None
    """twin:PRESET, twin@HOST:PORT, unitree:eth0, feetech:/dev/ttyUSB0, ...; not needed for --rung replay."""
    rung: Literal["replay", "shadow", "hang", "ground", "full"] = "full"  # Which rung of the ladder.
    robot: str | None = None  # A built-in name, or your robot's folder; default: the one the bundle was made for.
    command: tuple[str, ...] = ()  # Command at the start: forward=0.3 turn=0.1; columns that are not named are zero.
    speed: float | None = None
    """Limit of commands in m/s and rad/s; default: 0.3 for hang and ground, as trained for full."""
    seconds: float | None = None
    """Time that the policy runs; default: by rung (10 or 20), 0: until it is stopped (keys, gamepad, Ctrl-C)."""
    smoothing: float = 1.0  # Share of the new action in a moving average of actions; 1: none.
    target_step: float | None = None
    """Largest change of a joint's target in a control step, rad; default: as the bundle says."""
    torque: float | None = None  # Share of the robot's torque limits; default: 0.8 for hang and ground, 1 for full.
    on_exit: Literal["damp", "sit"] = "damp"  # After a normal end: damp at once, or lower the robot softly first.
    gamepad: str | None = None  # Device of a gamepad, e.g. /dev/input/js0; any button is the emergency stop.
    keys: bool = True  # Listen to keys where this is a terminal.
    live: bool = False  # Publish telemetry for a live page (`trueup deploy page ADDRESS`); prints address and token.
    log: PathLike | None = None  # With --rung replay: a robot's log to run the policy on.
    uncertified: bool = False  # Start without a passed certificate; what is missing is printed and recorded.
    allow: tuple[str, ...] = ()  # Findings of the preflight to let pass, by name; recorded.
    engine: Literal["numpy", "onnxruntime"] = "numpy"  # Inference engine of the network.
    out: OutFolderLike | None = None  # Folder of this run; default: BUNDLE.deployed/RUNG-TIME.
    guard: GuardCfg = field(default_factory=GuardCfg)
    """Thresholds of the motor guard (docs/guards.md); the rung and the bundle set what a command may ask for."""


@dataclass(frozen=True)
class ReplayVerb:
    """Compute a recorded run's commands again from its states; they must be the same to the last bit.

    In: policy.rows (or the folder of a run). Out: exit code 0 if all commands are the same, 1 if not.
    """

    recording: tyro.conf.Positional[PathLike]  # policy.rows, or the folder it lies in.
    _: KW_ONLY
    bundle: PathLike | None = None  # Folder of the bundle; default: the recorded one.


def run(verb: DeployVerb) -> Deployed:
    """Run a policy on one rung of the ladder, and return how it went.

    bundle   folder of a bundle
    driver   what a robot is reached by: "twin:mild?base=free", "unitree:eth0"

    All options are the fields of `DeployVerb`, which says what they mean, and the flags of `trueup deploy`.
    """
    from trueup.deploy.deploy import deploy as deploy_bundle

    return deploy_bundle(verb)


deploy = called_with(DeployVerb, run)
