"""Mirror: left-right symmetry as index and sign arrays, for learners that use it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Mirror(NamedTuple):
    """mirrored = values[:, index] * sign, for actor and critic observations and for actions."""

    actor_index: NDArray[np.intp]
    actor_sign: NDArray[np.float32]
    critic_index: NDArray[np.intp]
    critic_sign: NDArray[np.float32]
    action_index: NDArray[np.intp]
    action_sign: NDArray[np.float32]
