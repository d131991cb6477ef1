"""ALLOWED: the operators that a policy's network may have, with the function of each."""

from __future__ import annotations

from trueup.policy.graph.operators import MATHS, Operator
from trueup.policy.graph.recurrent import RECURRENT
from trueup.policy.graph.shapes import SHAPES

ALLOWED: dict[str, Operator] = {**MATHS, **SHAPES, **RECURRENT}
