"""The parameter check names the parameter, the number and its place."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.models.values import require_positive


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan, np.inf])
def test_number_that_is_not_positive_is_refused_with_its_index(bad: float) -> None:
    with pytest.raises(TrueupError, match=r"gain must be above zero and finite.*at index \[1\]"):
        require_positive("gain", np.array([1.0, bad]))


def test_zero_and_infinity_pass_only_when_allowed() -> None:
    require_positive("limit", np.array([0.0, np.inf]), or_zero=True, finite=False)
    with pytest.raises(TrueupError, match="limit must be zero or more, found nan"):
        require_positive("limit", np.nan, or_zero=True, finite=False)
