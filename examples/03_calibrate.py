"""Calibrate a twin nobody knows: record, fit, look at the verdicts, record what was missing, fit again, export.

python examples/03_calibrate.py --out out/calibrate
"""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

import trueup as tu
from trueup.calibrate.active.plan import ActiveCfg
from trueup.record.session import run_session
from trueup.record.verbs import RecordSessionCfg
from trueup.report.record import print_active
from trueup.robot.excitation.limits import LimitCfg


@dataclass(frozen=True, kw_only=True)
class DemoCfg:
    """Record, calibrate, record actively, calibrate again, export."""

    robot: str = "pendulum"
    driver: str = "twin:pace?seed=7"
    params: str = "armature,friction,encoder_bias,delay,kp"
    seconds: float = 10.0
    amplitude: float = 0.02  # small motions tell little: that is the point
    out: Path = Path("out/calibrate")


def main(cfg: DemoCfg) -> None:
    console = Console()
    robot = tu.load_robot(cfg.robot)
    console.rule(f"small motions of {cfg.driver}")
    log = tu.record(robot, driver=cfg.driver, seconds=cfg.seconds, amplitude=cfg.amplitude)
    fit = tu.calibrate(robot, [log], params=cfg.params)
    console.print(fit.table(), highlight=False)
    fit.write(cfg.out)

    if any(verdict != "identified" for verdict in fit.verdicts.values()):
        console.rule("a motion for what is weak")
        plan = tu.plan_active(robot, fit.calibration, ActiveCfg(limits=LimitCfg(amplitude_rad=0.8)))
        print_active(plan, console)
        active = run_session(robot, RecordSessionCfg(driver=cfg.driver), plan.rehearsal).log
        fit = tu.calibrate(robot, [log, active], params=cfg.params, start=fit.calibration)
        console.print(fit.table(), highlight=False)

    console.rule("done")
    for loss in fit.export("mjcf", cfg.out / "robot").losses:
        console.print(f"not in the exported model: {loss}")
    console.print(f"page   {fit.report(cfg.out / 'index.html')}\nrobot  {cfg.out / 'robot'}")


if __name__ == "__main__":
    main(tyro.cli(DemoCfg))
