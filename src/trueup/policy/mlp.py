"""MlpPolicy: a trained network as plain NumPy, with the specs of what it sees and says. The robot needs nothing else.

On disk a policy is a folder: `policy.json` (specs, rate, sizes) and `policy.safetensors` (weights, statistics).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.policy.action import ActionSpec
from trueup.policy.layers import Float32, Layer, forward, sizes
from trueup.policy.normalizer import Normalizer
from trueup.policy.observation import ObservationSpec
from trueup.policy.student import Student

JSON_FILE, WEIGHTS_FILE = "policy.json", "policy.safetensors"
_STUDENT = "student."
SCHEMA = 1


class PolicySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must agree between training and robot; kp and kd are the servo's gains, per joint.

    student_steps   how far back the policy looks; 0: it remembers nothing
    """

    schema: int = SCHEMA
    task: str
    robot: str
    control_hz: float
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    observation: ObservationSpec
    action: ActionSpec
    student_steps: int = 0

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")


class MlpPolicy:
    """action = W_n elu(... elu(W_1 normalised(obs) + b_1)) + b_n; with `student` layers, see `student.Student`.

    A policy with a student remembers: it acts for `nrow` rows, one call a control step, and `restart` forgets.
    """

    def __init__(
        self,
        spec: PolicySpec,
        layers: Sequence[Layer],
        normalizer: Normalizer,
        student: Sequence[Layer] = (),
        nrow: int = 1,
    ) -> None:
        self.spec, self.normalizer = spec, normalizer
        self.layers = [(np.asarray(w, np.float32), np.asarray(b, np.float32)) for w, b in layers]
        student = [(np.asarray(w, np.float32), np.asarray(b, np.float32)) for w, b in student]
        self._check(student)
        self.student: Student | None = None
        if student:
            steps, naction = spec.student_steps, len(spec.action.moved)
            self.student = Student(student, self.layers, steps=steps, naction=naction, nrow=nrow)

    def _check(self, student: list[Layer]) -> None:
        """A student reads its past; what acts on its answer, or on the observation alone, must say actions."""
        nobs, naction = self.spec.observation.nactor, len(self.spec.action.moved)
        past = self.spec.student_steps * (nobs + naction)
        guess = len(student[-1][1]) if student else 0  # a latent, or the actions themselves
        first = sizes(student, past) if student or past else [0]
        second = sizes(self.layers, nobs + guess) if self.layers else first
        if (
            first is None
            or second is None
            or second[-1] != naction
            or bool(student) != bool(past)
            or len(self.normalizer.mean) != nobs
        ):
            shapes = [w.shape for w, _ in (*student, *self.layers)]
            raise TrueupError(f"this policy's weights do not fit its specs: layers of sizes {shapes}")
        if not all(np.isfinite(part).all() for layer in (*student, *self.layers) for part in layer):
            raise TrueupError("this policy has weights that are not finite")

    def __call__(self, obs: Float32) -> Float32:
        """Actions (n, naction) of observations (n, nactor)."""
        x = self.normalizer(obs)
        return forward(self.layers, x) if self.student is None else self.student(x)

    def restart(self, rows: NDArray[np.intp]) -> None:
        """The episodes of these rows ended."""
        if self.student is not None:
            self.student.restart(rows)

    def save(self, folder: str | Path) -> None:
        """Write the folder; the weights first, so that a spec never stands alone."""
        from safetensors.numpy import save

        arrays: dict[str, NDArray[np.generic]] = {
            f"normalizer.{name}": values for name, values in self.normalizer.state().items()
        }
        for prefix, layers in (("", self.layers), (_STUDENT, self.student.layers if self.student else ())):
            for k, (weight, bias) in enumerate(layers):
                arrays[f"{prefix}{k}.weight"], arrays[f"{prefix}{k}.bias"] = weight, bias
        write_atomic(Path(folder) / WEIGHTS_FILE, save(arrays))
        write_atomic(Path(folder) / JSON_FILE, msgspec.json.format(msgspec.json.encode(self.spec), indent=1))


def load_policy(folder: str | Path, nrow: int = 1) -> MlpPolicy:
    """Read what `MlpPolicy.save` wrote; every failure names the file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    spec_file, weights_file = Path(folder) / JSON_FILE, Path(folder) / WEIGHTS_FILE
    try:
        spec = msgspec.json.decode(spec_file.read_bytes(), type=PolicySpec)
        arrays = load(weights_file.read_bytes())
    except OSError as error:
        raise TrueupError(f"the policy cannot be read: {error.strerror}", file=error.filename) from None
    except msgspec.MsgspecError as error:
        raise TrueupError(f"is not a policy: {error}", file=spec_file) from None
    except SafetensorError as error:
        raise TrueupError(f"is not a policy's weights: {error}", file=weights_file) from None
    try:
        normalizer = Normalizer(spec.observation.nactor)
        normalizer.restore({name: arrays[f"normalizer.{name}"] for name in ("mean", "var", "count")})
        return MlpPolicy(spec, _layers(arrays, ""), normalizer, _layers(arrays, _STUDENT), nrow)
    except KeyError as error:
        raise TrueupError(f"lacks the array {error.args[0]!r}", file=weights_file) from None


def _layers(arrays: dict[str, NDArray[np.generic]], prefix: str) -> list[Layer]:
    count = len([name for name in arrays if re.fullmatch(rf"{re.escape(prefix)}\d+\.weight", name)])
    return [
        (
            np.asarray(arrays[f"{prefix}{k}.weight"], np.float32),
            np.asarray(arrays[f"{prefix}{k}.bias"], np.float32),
        )
        for k in range(count)
    ]
