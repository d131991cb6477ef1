"""Cases of `verdict_rigs.py`: a rig, planted numbers, an effect that the fitted model lacks, and the log of it.

Rigs: the built-in pendulum; a load on a horizontal rail (`axis`); the same rail upright (`lift`). Half of the cases are
recorded on `rig_bench`, the others on twins of our own. Everything of a case follows from its seed.
"""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from calibrate_twins import record_twin
from rig_bench import Bench, Sensors, record_bench

from trueup.data.log import Log
from trueup.data.mcap.read import read_mcap
from trueup.data.mcap.write import write_log
from trueup.robot.excitation.excitation import ExcitationCfg, excite
from trueup.robot.excitation.limits import LimitCfg
from trueup.robot.excitation.waves import Kind
from trueup.robot.load import Robot, load_robot

HERE = Path(__file__).resolve().parent
RIGS = ("pendulum", "axis", "lift")
MAKERS = ("bench", "twin")
EFFECTS = ("none", "play", "hysteresis", "bristles", "load friction", "spring")
SETS = ("pace", "pace,kp", "pace,mass_scale", "pace,kp,mass_scale")
KINDS: tuple[Kind, ...] = ("multisine", "chirp", "steps")
GRAVITY = 9.81
# play, deflection of bristles and hysteresis, steps and noise of the encoder are in units of this
TRAVEL = {"pendulum": 1.0, "axis": 0.2, "lift": 0.2}
LOAD_FRICTION = 0.15  # of the force through the gears, at full strength
ALL_SCALED = frozenset({"armature", "damping", "friction", "kp", "mass_scale"})


@dataclass(frozen=True, kw_only=True)
class Case:
    """One recording: planted numbers by the names of a fit, and `strength` (0 to 1) of the effect that it lacks."""

    seed: int
    rig: str
    maker: str
    effect: str
    params: str
    kind: Kind
    rate_hz: float
    strength: float
    truth: dict[str, float]

    def truth_of(self, name: str) -> float:
        """What a fit of this rig should find; friction of a load that never changes is dry friction."""
        if name == "friction" and self.effect == "load friction" and self.rig == "lift":
            weight = nominal_of(self.rig)["gravity"] * self.truth["mass_scale"]
            return self.truth[name] + LOAD_FRICTION * self.strength * weight
        return self.truth[name]

    @property
    def hidden(self) -> frozenset[str]:
        """Parameters that no position can show on this rig, however long it is recorded.

        Where nothing depends on the position itself (both rails) a bias of the encoder only moves the origin. Without
        gravity inertia shows as (armature + mass) / kp alone; with it, one of kp and mass must be known: if both are
        fitted, all forces may grow together (the known kd is made up for by damping).
        """
        free = {"kp", "mass_scale"} & set(self.params.split(","))
        out = frozenset() if self.rig == "pendulum" else frozenset({"encoder_bias"})
        if len(free) == 2 or (self.rig == "axis" and free == {"kp"}):
            return out | ALL_SCALED
        return out | {"armature", "mass_scale"} if self.rig == "axis" and free else out


def make_case(seed: int) -> Case:
    """Draw a case; seeds in a row go through all combinations in a shuffled order."""
    every = list(itertools.product(RIGS, MAKERS, EFFECTS, SETS))
    order = np.random.default_rng(16).permutation(len(every))
    rig, maker, effect, params = every[order[seed % len(every)]]
    rng = np.random.default_rng([16, seed])
    nominal = nominal_of(rig)
    truth = {
        "armature": nominal["armature"] * _between(rng, 0.4, 2.5),
        "damping": nominal["damping"] * _between(rng, 0.3, 5.0),
        "friction": nominal["friction"] * _between(rng, 0.3, 4.0),
        "encoder_bias": float(rng.choice([-1.0, 1.0])) * _between(rng, 0.005, 0.04),
        "delay": _between(rng, 0.002, 0.012),
        "kp": _between(rng, 0.75, 1.35) if "kp" in params else 1.0,
        "mass_scale": _between(rng, 0.8, 1.3) if "mass_scale" in params else 1.0,
    }
    return Case(
        seed=seed,
        rig=rig,
        maker=maker,
        effect=effect,
        params=params,
        kind=KINDS[rng.integers(len(KINDS))],
        rate_hz=float(rng.choice([200.0, 250.0, 400.0, 500.0])),
        strength=0.0 if effect == "none" else float(rng.uniform(0.15, 1.0)),
        truth=truth,
    )


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(low * (high / low) ** rng.uniform())


@cache
def rig_robot(rig: str) -> Robot:
    """The robot as its user has it."""
    if rig == "pendulum":
        return load_robot("pendulum")
    if rig == "axis":
        return load_robot(HERE / "rigs" / "axis")
    folder = Path(tempfile.mkdtemp(prefix="lift"))
    for file in (HERE / "rigs" / "axis").iterdir():
        text = file.read_text().replace('axis="1 0 0"', 'axis="0 0 1"').replace('"axis"', '"lift"')
        (folder / file.name).write_text(text)
    return load_robot(folder)


def nominal_of(rig: str) -> dict[str, float]:
    """The model's own joint numbers, and the inertia (or mass) and the weight of its load."""
    if rig == "pendulum":
        inertia, weight = 0.5 * 0.15**2 + 0.000125, 0.5 * GRAVITY * 0.15
        return {"armature": 0.01, "damping": 0.05, "friction": 0.05, "load": inertia, "gravity": weight}
    weight = 2.0 * GRAVITY if rig == "lift" else 0.0
    return {"armature": 0.5, "damping": 10.0, "friction": 3.0, "load": 2.0, "gravity": weight}


# --- recording ---
def log_of(case: Case, folder: Path) -> Log:
    """The case's log, recorded once."""
    file = folder / f"{case.seed}.mcap"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_log(_bench_log(case) if case.maker == "bench" else _twin_log(case), file)
    return read_mcap(file)


def _excitation(case: Case) -> ExcitationCfg:
    limits = LimitCfg(amplitude_rad=0.8 * TRAVEL[case.rig])
    return ExcitationCfg(kind=case.kind, seconds=20.0, rate_hz=case.rate_hz, seed=case.seed, limits=limits)


def _stiffness(case: Case, hz: float) -> float:
    """Of gears on which the load would swing at so many Hz."""
    return nominal_of(case.rig)["load"] * case.truth["mass_scale"] * (2.0 * np.pi * hz) ** 2


def _spring_hz(case: Case) -> float:
    """The gears' own frequency: strong effects of springs are slow ones; the other effects have stiff gears."""
    return {"spring": 45.0 - 33.0 * case.strength, "hysteresis": 40.0}.get(case.effect, 80.0)


def _bench_log(case: Case) -> Log:
    robot, rng = rig_robot(case.rig), np.random.default_rng([17, case.seed])
    spec, truth, nominal, travel = robot.spec, case.truth, nominal_of(case.rig), TRAVEL[case.rig]
    bench = Bench(
        motor=truth["armature"],
        load=nominal["load"] * truth["mass_scale"],
        gravity=nominal["gravity"] * truth["mass_scale"],
        swings=case.rig == "pendulum",
        damping=truth["damping"],
        friction=truth["friction"],
        kp=float(spec.kp[0]) * truth["kp"],
        kd=float(spec.kd[0]),
        delay_s=truth["delay"],
        bias=truth["encoder_bias"],
    )
    if case.effect == "bristles":
        dry = truth["friction"]
        bench = replace(
            bench, bristle=0.01 * case.strength * travel, stiction=case.strength * dry, stribeck_vel=0.1 * travel
        )
    elif case.effect != "none":
        bench = _with_gears(bench, case)
    sensors = Sensors(position_noise=4e-4 * travel, position_step=4e-4 * travel, velocity_noise=0.02 * travel)
    return record_bench(bench, spec, excite(spec, _excitation(case)), sensors, rng)


def _with_gears(bench: Bench, case: Case) -> Bench:
    travel, strength, stiff = TRAVEL[case.rig], case.strength, _stiffness(case, _spring_hz(case))
    limit = float(rig_robot(case.rig).spec.torque_limit[0])
    geared = replace(bench, stiffness=stiff, gear_damping=0.2 * np.sqrt(stiff * bench.load))
    if case.effect == "play":
        return replace(geared, play=0.03 * strength * travel)
    if case.effect == "hysteresis":
        return replace(geared, hysteresis=0.04 * strength * limit, hysteresis_width=0.004 * travel)
    if case.effect == "load friction":
        return replace(geared, load_friction=LOAD_FRICTION * strength)
    return replace(geared, hardening=strength * stiff**3 / limit**2)


def _twin_log(case: Case) -> Log:
    """Recorded through a twin's driver; a gain that the user does not know is commanded, and the log says another."""
    robot = rig_robot(case.rig)
    real = [msgspec.structs.replace(j, kp=j.kp * case.truth["kp"]) for j in robot.spec.joints]
    other = replace(robot, spec=msgspec.structs.replace(robot.spec, joints=tuple(real)))
    with tempfile.TemporaryDirectory() as folder:
        preset = Path(folder) / "rig.toml"
        preset.write_text(_preset(case))
        log = record_twin(other, preset, case.seed, _excitation(case))
    said = np.broadcast_to(robot.spec.kp, log["target_kp"].shape).copy()
    return replace(log, signals=log.signals | {"target_kp": said})


def _preset(case: Case) -> str:
    truth, nominal, travel = case.truth, nominal_of(case.rig), TRAVEL[case.rig]
    scales = [f"{name}_scale = {truth[name] / nominal[name]}" for name in ("armature", "damping", "friction")]
    return "\n".join(
        [
            "schema = 1",
            "physics_hz = 4000.0",
            "[joint]",
            *scales,
            f"encoder_bias = {truth['encoder_bias']}",
            f"[delay]\nseconds = {truth['delay']}",
            f"[body]\nmass_scale = {truth['mass_scale']}",
            f"[sensors]\nposition_noise = {4e-4 * travel}\nvelocity_noise = {0.02 * travel}",
            f"encoder_counts = {round(2.0 * np.pi / (4e-4 * travel))}",
            *_twin_effect(case),
        ]
    )


def _twin_effect(case: Case) -> list[str]:
    """Sections of the preset; play, springs and hysteresis as on the bench."""
    limit, travel, strength = float(rig_robot(case.rig).spec.torque_limit[0]), TRAVEL[case.rig], case.strength
    if case.effect == "bristles":
        return [
            '[friction]\nkind = "lugre"',
            f"stiction = {strength}\nstribeck_vel = {0.1 * travel}\nbristle = {0.01 * strength * travel}",
        ]
    if case.effect == "load friction":
        return [f'[friction]\nkind = "stribeck"\nload = {LOAD_FRICTION * strength}']
    if case.effect == "none":
        return []
    gears = ["[transmission]", f"windup = {limit / _stiffness(case, _spring_hz(case))}", "damping = 0.1"]
    return (
        gears
        + {
            "play": [f"backlash = {0.03 * strength * travel}"],
            "hysteresis": [f"hysteresis = {0.04 * strength}", f"hysteresis_rad = {0.004 * travel}"],
            "spring": [f"hardening = {strength}"],
        }[case.effect]
    )
