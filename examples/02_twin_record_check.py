"""A robot for everyone: start a twin with hidden physics, excite it, record it, check the log, look at it.

python examples/02_twin_record_check.py --out out/demo
"""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

import trueup as tu
from trueup.record.session import plan_session, run_session
from trueup.record.verbs import RecordSessionCfg
from trueup.report.log import print_report, write_log_page
from trueup.report.record import print_rehearsal, print_result
from trueup.report.terminal import progress_bar
from trueup.robot.excitation.excitation import ExcitationCfg


@dataclass(frozen=True, kw_only=True)
class DemoCfg:
    """Twin, record, check."""

    robot: str = "go2"
    driver: str = "twin:harmonic?seed=7"
    seconds: float = 20.0
    out: Path = Path("out/demo")


def main(cfg: DemoCfg) -> None:
    console = Console()
    robot = tu.load_robot(cfg.robot)
    console.rule(f"a {cfg.robot} nobody knows: {cfg.driver}")
    file = cfg.out / "twin.mcap"
    session_cfg = RecordSessionCfg(driver=cfg.driver, out=file, overwrite=True)
    rehearsal = plan_session(robot, ExcitationCfg(seconds=cfg.seconds))
    print_rehearsal(robot, rehearsal, console)
    with progress_bar("recording", console) as progress:
        session = run_session(robot, session_cfg, rehearsal, progress=progress)
    print_result(session.result, file, console)
    report = tu.check_log(session.log, robot)
    print_report(session.log, report)
    error = tu.replay(robot, session.log).rmse.mean()
    console.print(f"the nominal model replays it with {error:.4f} rad RMSE: what calibration will have to explain")
    page = write_log_page(session.log, report, cfg.out / "log.html", title=f"{cfg.robot} under {cfg.driver}")
    console.print(f"log    {file}\npage   {page}")


if __name__ == "__main__":
    main(tyro.cli(DemoCfg))
