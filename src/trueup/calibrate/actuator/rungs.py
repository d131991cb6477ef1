"""The rungs of the ladder as data, simplest first. A rung adds one idea to the one below and starts from its fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trueup.core.errors import TrueupError, did_you_mean

Kind = Literal["ideal", "params", "torque", "residual"]
UanMethod = Literal["inverse", "gradient", "rl"]


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One model of the actuators.

    kind    ideal: the spec as it is; params: parameters of the simulator; torque: the motor's torque, learned
            from measured torque; residual: a torque added to the servo's, learned from positions
    adds    what is fitted beyond the common set (`params`); an entry of `calibrate.rules`
    alone   only `adds` is fitted, not the common set
    start   rung whose fit this one starts from or builds on
    net     form of the learned model, as `calibrate.nets.supervised` names it
    """

    name: str
    title: str
    kind: Kind
    says: str
    adds: str = ""
    alone: bool = False
    start: str = ""
    net: str = ""


BASE = "pace"
RUNGS: tuple[Rung, ...] = (
    Rung(name="pd", title="ideal PD", kind="ideal", says="the spec's gains and limits, nothing fitted"),
    Rung(
        name="delay",
        title="PD + delay",
        kind="params",
        says="one command delay",
        adds="delay",
        alone=True,
    ),
    Rung(
        name=BASE,
        title="+ friction M1 (pace)",
        kind="params",
        says="rotor inertia, viscous and Coulomb friction and encoder bias of every joint, one delay",
        start="delay",
    ),
    Rung(
        name="motor",
        title="+ torque-speed line",
        kind="params",
        says="pace behind a motor with a stall torque and a no-load speed",
        adds="stall_torque,no_load_speed",
        start=BASE,
    ),
    *(
        Rung(
            name=f"M{k}",
            title=f"+ friction M{k}",
            kind="params",
            says=says,
            adds=f"friction:M{k}",
            start=BASE,
        )
        for k, says in (
            (2, "pace with Stribeck friction"),
            (3, "pace with friction that grows with load"),
            (4, "Stribeck and load, the load in the Stribeck part too"),
            (5, "load friction that differs between driving and being driven"),
            (6, "M5 with a quadratic term where motor and load oppose"),
        )
    ),
    Rung(
        name="fir",
        title="linear filter",
        kind="torque",
        says="torque as a linear filter of position error and velocity at three taps",
        start=BASE,
        net="fir",
    ),
    Rung(
        name="net",
        title="actuator net, 6 inputs",
        kind="torque",
        says="torque by a small net on position error and velocity at t, t - 10 ms, t - 20 ms",
        start=BASE,
        net="net",
    ),
    Rung(
        name="net_long",
        title="actuator net, long window",
        kind="torque",
        says="torque by a wider net on a long history of error, velocity and command",
        start=BASE,
        net="long",
    ),
    Rung(
        name="uan",
        title="unsupervised actuator net",
        kind="residual",
        says="pace with a torque added by a net that has learned from positions alone",
        start=BASE,
        net="uan",
    ),
)
_BY_NAME = {rung.name: rung for rung in RUNGS}
_SETS = {
    "all": tuple(_BY_NAME),
    "parametric": tuple(r.name for r in RUNGS if r.kind in ("ideal", "params")),
    "quick": ("pd", "delay", BASE, "motor", "fir", "uan"),
}


def rung_named(name: str) -> Rung:
    """The rung of this name."""
    if name not in _BY_NAME:
        raise TrueupError(f"the ladder has no rung {name!r}{did_you_mean(name, [*_SETS, *_BY_NAME])}")
    return _BY_NAME[name]


def choose(wanted: str) -> tuple[Rung, ...]:
    """Read `all`, `parametric`, `quick` or names such as `pd,pace,uan`; what a rung stands on comes with it."""
    names: set[str] = set()
    for item in (part.strip() for part in wanted.split(",")):
        for name in _SETS.get(item, (item,)):
            while name:
                names.add(name)
                name = rung_named(name).start
    return tuple(rung for rung in RUNGS if rung.name in names)


def params_of(rung: Rung, common: str) -> str:
    """What is fitted, as `parameter_names` reads it."""
    if rung.alone:
        return rung.adds
    return f"{common},{rung.adds}" if rung.adds else common
