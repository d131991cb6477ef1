"""How well do squats weigh a load? Results: docs/results/load.md and .json.

    python benchmarks/load.py [--seeds 5] [--first-seed 700]

go2 twins of the presets payload, worn and harmonic squat on the ground; what they weigh is compared with the sealed
truth. Weak motors weigh a robot heavier by one over their strength: the truth that is compared with has that factor.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import tyro
from parts import table
from results import publish

from trueup.calibrate.weighing import Load, weigh
from trueup.record.session import run_session
from trueup.record.verbs import RecordSessionCfg
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.excitation.limits import LimitCfg
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import compile_model, default_qpos
from trueup.twin.truth.seal import reveal

PRESETS = ("payload", "worn", "harmonic")


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """Twins by seed."""

    seeds: int = 5
    """Of each preset."""
    first_seed: int = 700


def main(cfg: BenchCfg) -> None:
    robot = load_robot("go2")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        seeds = range(cfg.first_seed, cfg.first_seed + cfg.seeds)
        rows = [one_twin(robot, preset, seed) for preset in PRESETS for seed in seeds]
    error = np.array([row["found"] - row["true"] for row in rows])
    sigma = np.array([row["standard_error"] for row in rows])
    numbers: dict[str, object] = {
        "rows": rows,
        "rms_kg": float(np.sqrt((error**2).mean())),
        "worst_kg": float(np.abs(error).max()),
        "covered": float((np.abs(error) < 1.96 * sigma).mean()),
        "centre_rms_m": float(np.sqrt(np.mean([row["centre_error"] ** 2 for row in rows]))),
    }
    publish("load", numbers, page(rows, numbers))


def one_twin(robot: Robot, preset: str, seed: int) -> dict[str, Any]:
    excitation = ExcitationCfg(kind="squat", seconds=20.0, limits=LimitCfg(amplitude_rad=0.8))
    session = run_session(robot, RecordSessionCfg(driver=f"twin:{preset}?seed={seed}&base=free"), excitation)
    found = weigh(robot, [session.log])
    row = {"twin": f"{preset} {seed}"} | compared(robot, found, reveal(f"go2-{preset}-{seed}"))
    print(row, flush=True)
    return row


def compared(robot: Robot, found: Load, sealed: dict[str, Any]) -> dict[str, Any]:
    """Load beside the truth's, kg, and distance of the centres of mass in the plane, m."""
    model = compile_model(robot)
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    mujoco.mj_forward(model, data)
    body = sealed["body"] or {"names": []}
    own = model.body_mass[1:]
    place = data.xipos[1:] - data.body(robot.spec.base.body).xpos
    mass, moved = own.copy(), place.copy()
    for k, name in enumerate(body["names"]):
        at = model.body(name).id - 1
        mass[at] *= body["mass_scale"][k]
        moved[at] += data.xmat[at + 1].reshape(3, 3) @ body["com_offset"][k]
    load = sealed["payload"] or {"mass": 0.0, "offset": [0.0, 0.0, 0.0]}
    strength = float(np.mean(sealed["joint"]["torque_scale"]))
    total = mass.sum() + load["mass"]
    moment = (mass @ moved + load["mass"] * np.array(load["offset"])) / strength - own @ place
    centre = np.linalg.norm(found.mass * np.array(found.place) - moment[:2]) / total
    return {
        "found": found.mass,
        "standard_error": found.standard_error,
        "true": float(total / strength - own.sum()),
        "carried": float(total - own.sum()),
        "strength": strength,
        "centre_error": float(centre),
    }


def page(rows: list[dict[str, Any]], numbers: dict[str, Any]) -> str:
    lines = [
        (
            row["twin"],
            f"{row['found']:+.2f} +- {row['standard_error']:.2f}",
            f"{row['true']:+.2f}",
            f"{row['carried']:+.2f}",
            f"{row['strength']:.3f}",
            f"{1e3 * row['centre_error']:.1f}",
        )
        for row in rows
    ]
    return f"""# Weighing a load

go2 twins squat on the ground for 20 s (`trueup record --excitation squat`); `trueup calibrate load` weighs what they carry
beyond their model (15.2 kg), from joint positions, commands and the IMU alone. Weak motors weigh a robot heavier by one
over their strength, so that is what is compared with.

{table(("twin", "found, kg", "true under the gains as written", "carried", "strength of motors", "centre of mass off, mm"), lines)}

Error {numbers["rms_kg"]:.2f} kg (root mean square; worst {numbers["worst_kg"]:.2f}), {numbers["covered"]:.0%} within the 95 % interval; centre of mass of the robot
{1e3 * numbers["centre_rms_m"]:.1f} mm (root mean square, in the plane).
"""  # noqa: E501


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
