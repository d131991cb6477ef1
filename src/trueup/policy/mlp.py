"""MlpPolicy: a policy with the specs of its observations and actions. A robot needs nothing else.

On disk it is a folder: `policy.json` (specs, rate, kind of policy) and `policy.safetensors` (weights, statistics).
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from trueup.core.documents import read_arrays, read_json, write_json
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.policy.action import ActionSpec
from trueup.policy.net import NetWiring, PolicyNet, read_net
from trueup.policy.observation import ObservationSpec
from trueup.policy.runner import PolicyRunner

JSON_FILE, WEIGHTS_FILE = "policy.json", "policy.safetensors"
SCHEMA = 2


class PolicySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Specs that must agree between training and robot; kp and kd are the servo's gains, per joint."""

    schema: int = SCHEMA
    task: str
    robot: str
    control_hz: float
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    observation: ObservationSpec
    action: ActionSpec
    net: NetWiring = NetWiring()

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")
        if not 0.0 < self.control_hz < math.inf:
            raise ValueError(f"control_hz must be positive, found {self.control_hz:g}")
        for name, count in (("kp", len(self.kp)), ("kd", len(self.kd))):
            if count != len(self.action.joint_names):
                raise ValueError(f"{name}: {count} numbers for {len(self.action.joint_names)} joints")


class MlpPolicy(PolicyRunner):
    """A PolicyRunner that knows its specs and can be saved; `spec.net` is that of `net`."""

    def __init__(self, spec: PolicySpec, net: PolicyNet, nrow: int = 1) -> None:
        if net.spec.kind == "privileged":
            raise TrueupError("this policy needs the hidden factors, which no robot knows; export its student")
        net.check(spec.observation.nactor, len(spec.action.controlled_joints))
        self.spec = msgspec.structs.replace(spec, net=net.spec)
        super().__init__(net, nrow)

    def save(self, folder: str | Path) -> None:
        """Write the folder; the weights first, so that a spec never stands alone."""
        from safetensors.numpy import save

        write_atomic(Path(folder) / WEIGHTS_FILE, save(self.net.arrays()))
        write_json(Path(folder) / JSON_FILE, self.spec)


def load_policy(folder: str | Path, nrow: int = 1) -> MlpPolicy:
    """Read what `MlpPolicy.save` wrote; every failure names the file."""
    spec_file, weights_file = Path(folder) / JSON_FILE, Path(folder) / WEIGHTS_FILE
    spec = read_json(spec_file, PolicySpec, "policy")
    arrays = read_arrays(weights_file, "policy's weights")
    try:
        return MlpPolicy(spec, read_net(spec.net, arrays), nrow)
    except KeyError as error:
        raise TrueupError(f"lacks the array {error.args[0]!r}", file=weights_file) from None
    except TrueupError as error:
        raise TrueupError(error.message, file=weights_file) from None
    except (TypeError, IndexError) as error:  # an array without rows, or without numbers
        raise TrueupError(f"is not a policy's weights: {error}", file=weights_file) from None
