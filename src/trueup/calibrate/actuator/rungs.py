"""The rungs of the ladder as data, simplest first. A rung adds one effect to the one below and starts from its fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trueup.core.errors import TrueupError, did_you_mean

Kind = Literal["ideal", "params", "torque", "residual"]
UanMethod = Literal["inverse", "rl"]


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
    adds: str = ""
    alone: bool = False
    start: str = ""
    net: str = ""

    @property
    def is_learned(self) -> bool:
        """Whether it has a trained net or filter."""
        return self.kind in ("torque", "residual")


BASE = "pace"
RUNGS: tuple[Rung, ...] = (
    Rung(name="pd", title="ideal PD", kind="ideal"),
    Rung(name="delay", title="PD + delay", kind="params", adds="delay", alone=True),
    # rotor inertia, viscous and Coulomb friction and encoder bias of every joint, one delay
    Rung(name=BASE, title="+ friction M1 (pace)", kind="params", start="delay"),
    Rung(name="motor", title="+ torque-speed line", kind="params", adds="stall_torque,no_load_speed", start=BASE),
    # Stribeck and load-dependent friction, arXiv 2410.08650
    *(
        Rung(name=f"M{k}", title=f"+ friction M{k}", kind="params", adds=f"friction:M{k}", start=BASE)
        for k in range(2, 7)
    ),
    # torque from position error and velocity: three taps, three taps (arXiv 1901.08652), a long history
    Rung(name="fir", title="linear filter", kind="torque", start=BASE, net="fir"),
    Rung(name="net", title="actuator net, 6 inputs", kind="torque", start=BASE, net="net"),
    Rung(name="net_long", title="actuator net, long window", kind="torque", start=BASE, net="long"),
    # a torque added to the servo's, learned from positions alone (arXiv 2502.10894)
    Rung(name="uan", title="unsupervised actuator net", kind="residual", start=BASE, net="uan"),
)
_BY_NAME = {rung.name: rung for rung in RUNGS}
_SETS = {
    "all": tuple(_BY_NAME),
    "parametric": tuple(r.name for r in RUNGS if r.kind in ("ideal", "params")),
    "quick": ("pd", "delay", BASE, "motor", "M2", "fir", "net", "uan"),
}


def rung_named(name: str) -> Rung:
    """The rung of this name."""
    if name not in _BY_NAME:
        raise TrueupError(f"the ladder has no rung {name!r}{did_you_mean(name, [*_SETS, *_BY_NAME])}")
    return _BY_NAME[name]


def choose(wanted: str) -> tuple[Rung, ...]:
    """Parse `all`, `parametric`, `quick` or names such as `pd,pace,uan`; rungs they start from are added."""
    names: set[str] = set()
    for item in (part.strip() for part in wanted.split(",")):
        for name in _SETS.get(item, (item,)):
            while name:
                names.add(name)
                name = rung_named(name).start
    return tuple(rung for rung in RUNGS if rung.name in names)


def params_of(rung: Rung, common: str) -> str:
    """The fitted parameters, as `parameter_names` reads them."""
    if rung.alone:
        return rung.adds
    return f"{common},{rung.adds}" if rung.adds else common
