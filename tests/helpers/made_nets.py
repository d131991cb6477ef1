"""Actuator nets with random weights."""

from itertools import pairwise

import numpy as np

from trueup.models.actuator_net import ActuatorNet, NetSpec
from trueup.robot.load import load_robot


def made_net(
    robot="go2", *, hidden=(16, 16), taps=(0, 1, 2, 3), signals=("pos_error", "vel_error"), seed=0, ncontext=3, **spec
) -> ActuatorNet:
    """A net of this shape for a robot of the zoo; two groups of joints where there are several."""
    rng, names = np.random.default_rng(seed), load_robot(robot).spec.joint_names
    n = len(names)
    groups = spec.pop("groups", (tuple(range(0, n, 2)), tuple(range(1, n, 2))) if n > 1 else ((0,),))
    made = NetSpec(
        **{"robot": robot, "joint_names": names, "kind": "residual", "signals": signals, "taps": taps}
        | {"dt_s": 0.005, "groups": groups, "limit": (5.0,) * n}
        | spec
    )
    sizes = [made.ninput + ncontext, *hidden, 1]
    layers = tuple(
        tuple((rng.normal(0, 1 / np.sqrt(a), (b, a)), rng.normal(0, 0.1, b)) for a, b in pairwise(sizes))
        for _ in groups
    )
    shape = (len(groups), len(signals))
    return ActuatorNet(
        spec=made,
        layers=layers,
        mean=rng.normal(0, 0.1, shape),
        std=rng.uniform(0.1, 1.0, shape),
        scale=rng.uniform(0.5, 2.0, n),
        context=rng.normal(size=(n, ncontext)),
        low=np.full(shape, -0.2),
        high=np.full(shape, 0.2),
    )
