"""Hysteresis of a harmonic drive: a Dahl element beside the transmission's spring.

    z' = (d' - |d'| z)/x0,   tau = H z,   d = motor - link angle

|z| never exceeds 1; on every turn of the deflection the torque turns round over about x0, so a slow cycle encloses an
area: torque that depends on the past, which no function of the present state reproduces.
"""

from __future__ import annotations

import numpy as np
from numpy import absolute, add, divide, multiply, subtract
from numpy.typing import NDArray

from trueup.twin.truth.truth import TransmissionTruth

FloatArray = NDArray[np.float64]


class Hysteresis:
    """Adds the element's torque to the motor and writes it to the link, before every physics step.

    Stepped implicitly, z+ = (z + d' dt/x0)/(1 + |d'| dt/x0), and kept as y = z x0/dt:
    y+ = (y + d') c/(c + |d'|) with c = x0/dt.
    """

    def __init__(
        self, truth: TransmissionTruth, rate: FloatArray, motor: FloatArray, link: FloatArray, dt: float
    ) -> None:
        self._rate, self._motor, self._link = rate, motor, link
        self._turn = truth.hysteresis_rad / dt
        self._torque = truth.hysteresis / self._turn
        self._state, self._divisor = np.zeros_like(self._torque), np.zeros_like(self._torque)

    def __call__(self) -> None:
        divisor, state, turn = self._divisor, self._state, self._turn
        absolute(self._rate, divisor)
        add(divisor, turn, divisor)
        add(state, self._rate, state)
        multiply(state, turn, state)
        divide(state, divisor, state)
        multiply(state, self._torque, self._link)
        subtract(self._motor, self._link, self._motor)
