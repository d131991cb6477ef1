"""The list of where parameters come from."""

import numpy as np
from made_params import made_params, one

from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.origins import origin_lines, origins
from trueup.world.fitted.posterior import Fitted
from trueup.world.randomization.randomize import Draw

GO2 = load_robot("go2")
JOINTS = GO2.spec.joint_names


def found(ranges: dict[str, Draw]):
    estimates = [
        *(one("damping", (joint,), "bounded" if k < 9 else "weak", 1.0) for k, joint in enumerate(JOINTS)),
        *(one("armature", (joint,), "not visible", 0.01) for joint in JOINTS[:3]),
        one("mount_damping", (), "identified", 1.0, axis=0),
    ]
    fit = made_params(JOINTS, estimates, [0.0] * 16, np.eye(16))
    sim = BatchSim(GO2, SimCfg(threads=1))
    return origins(sim, ranges, Fitted(fit, sim))


def test_every_parameter_says_where_it_comes_from() -> None:
    ranges = {
        name: Draw(operation="scale", low=0.9, high=1.1)
        for name in ("damping", "armature", "kp", "payload", "contact_friction")
    }
    by_source: dict[str, set[str]] = {}
    for entry in found(ranges):
        by_source.setdefault(entry.source, set()).add(entry.name)
    assert by_source == {
        "calibration": {"damping"},
        "prior width": {"armature"},
        "left out": {"mount_damping"},
        "range": {"armature", "kp", "payload", "contact_friction"},  # damping is fitted in every joint
    }
    (rest,) = (entry for entry in found(ranges) if entry.source == "range" and entry.name == "armature")
    assert rest.of == JOINTS[3:]


def test_there_is_one_line_for_each_name() -> None:
    lines = origin_lines(found({"armature": Draw(operation="scale", low=0.9, high=1.1)}))
    assert [" ".join(line.split()) for line in lines] == [
        "damping 12 joints from the calibration: 9 bounded, 3 weak",
        "armature 3 joints from the calibration: 3 not visible (prior width); "
        "task's range for 9 joints that the fit left over",
        "mount_damping left out: belongs to the stand",
    ]


def test_a_range_of_one_body_and_one_value_of_many_joints_are_said_so() -> None:
    fit = made_params(JOINTS, [one("delay", JOINTS, "identified", 0.01)], [0.0], np.eye(1))
    sim = BatchSim(GO2, SimCfg(threads=1))
    ranges = {"mass_scale": Draw(operation="set", low=0.9, high=1.1, of=("base",))}
    lines = origin_lines(origins(sim, ranges, Fitted(fit, sim)))
    assert [" ".join(line.split()) for line in lines] == [
        "delay 12 joints with 1 value from the calibration: 1 identified",
        "mass_scale task's range",
    ]
