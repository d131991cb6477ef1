"""Inspect a robot, step 512 of it with randomised parameters, film one, and write a page worth looking at.

python examples/01_first_five_minutes.py --out out/demo
"""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

import trueup as tu
from trueup.report.drop import film_drop, print_drop, write_drop_page
from trueup.report.robot import print_inspection
from trueup.report.terminal import progress_bar
from trueup.world.sensors import SensorCfg
from trueup.world.verbs import DropCfg


@dataclass(frozen=True, kw_only=True)
class DemoCfg:
    """The first five minutes with trueup."""

    robot: str = "go2"
    out: Path = Path("out/demo")
    nsim: int = 512
    seconds: float = 5.0


def main(cfg: DemoCfg) -> None:
    console = Console()
    robot = tu.load_robot(cfg.robot)
    print_inspection(tu.inspect_robot(robot))

    console.rule(f"{cfg.nsim} simulations, each with its own masses, friction, gains, delay and encoder biases")
    noise = SensorCfg(joint_pos_rad=0.005, joint_vel_rad_s=0.1, latency_s=(0.0, 0.02))
    drop_cfg = DropCfg(seconds=cfg.seconds, nsim=cfg.nsim, randomize=True, sensors=noise)
    with progress_bar("simulating", console) as progress:
        result = tu.drop(robot, drop_cfg, progress=progress)
    print_drop(robot, result, console)

    cfg.out.mkdir(parents=True, exist_ok=True)
    film = cfg.out / f"{robot.spec.name}.mp4"
    with progress_bar("filming", console) as progress:
        film_drop(robot, result, drop_cfg, film, progress)
    page = write_drop_page(robot, result, cfg.out / "index.html", film=film)
    console.rule("done")
    console.print(f"film   {film}\npage   {page}   (open it in a browser; it needs no network)")


if __name__ == "__main__":
    main(tyro.cli(DemoCfg))
