"""Two arms and a cube: a scene is built, one arm takes the cube and lifts it in one simulation of two, and is filmed.

python examples/04_two_arms.py --out out/two_arms.mp4
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

import trueup as tu
from trueup.view.film import film, visual_model
from trueup.world.scene.scene import Mounted, Object, Scene, SceneLink


@dataclass(frozen=True, kw_only=True)
class DemoCfg:
    """Build a scene, step it, film row 1."""

    seconds: float = 2.0
    out: Path = Path("out/two_arms.mp4")


def main(cfg: DemoCfg) -> None:
    arm = tu.load_robot("so101")
    scene = Scene(
        robots=(
            Mounted(robot=arm, prefix="left_", pos=(-0.35, 0.0, 0.0)),
            Mounted(robot=arm, prefix="right_", pos=(0.35, 0.0, 0.0), quat=(0.0, 0.0, 0.0, 1.0)),
        ),
        objects=(Object(name="cube", shape="box", size=(0.03, 0.03, 0.03), pos=(-0.05, 0.0, 0.03)),),
        links=(SceneLink(name="left_holds", kind="weld", a="left_gripper", b="cube"),),
    )
    sim = tu.BatchSim(scene, tu.SimCfg(nsim=2))
    sim.params.set("object_mass", [[0.02], [0.1]], of="cube")
    sim.set_link("left_holds", [False, True], here=True)
    left, right = (place.joints for place in sim.robots)
    target, qpos = sim.robot.spec.default_pose, []
    for t in range(round(cfg.seconds / sim.control_dt)):
        target[left.start + 2] = max(0.0, 0.6 - 0.02 * t)  # lifts by the elbow
        target[right.start] = 0.5 * np.sin(0.1 * t)  # waves
        sim.step(target)
        qpos.append(sim.qpos[1].copy())
    heights = ", ".join(f"{z:.3f} m" for z in sim.object_pose("cube")[:, 2])
    print(f"height of the cube, let go and held: {heights}")
    film(visual_model(scene), np.array(qpos), cfg.out, sample_hz=1.0 / sim.control_dt)
    print(f"film  {cfg.out}")


if __name__ == "__main__":
    main(tyro.cli(DemoCfg))
