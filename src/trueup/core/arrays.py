"""Names of array types that every folder uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Ids = NDArray[np.intp]
