"""Config of `trueup wiggle`."""

from __future__ import annotations

from dataclasses import dataclass

import tyro

from trueup.core.files import OutFile
from trueup.deploy.wiggle.analysis.finding import WiggleResult
from trueup.deploy.wiggle.cfg import WiggleCfg
from trueup.deploy.wiggle.wiggle import wiggle


@dataclass(frozen=True, kw_only=True)
class WiggleVerb(WiggleCfg):
    """Find swapped joints, wrong signs, dead joints and encoder offsets by moving a robot that is held in the air.

    In: a robot and its driver. The robot hangs in the air (an arm: room all around) and is moved slowly within its
    limits. Out: what is wrong, what was measured of each joint, what cannot be seen; exit code 1 if anything is wrong.
    """

    robot: tyro.conf.Positional[str]  # Built-in name, or a folder, spec, MJCF or URDF of your own.
    driver: str = "twin:mild"
    """Which robot or twin: `twin:worn?seed=3`, `unitree:eth0`, `feetech:/dev/ttyACM0`, ..."""
    lockstep: bool = False
    """Twins: as fast as the computer goes."""
    out: OutFile | None = None  # JSON file for the result.


def run(verb: WiggleVerb) -> WiggleResult:
    """Run the test as the verb says."""
    return wiggle(verb.robot, driver=verb.driver, cfg=verb, lockstep=verb.lockstep or None)
