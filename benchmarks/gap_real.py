"""Diagnosis of recordings of robots: an so101 arm, a go2 in the air; against nominal, wrong and calibrated models."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from parts import Numbers, table
from transfer_worlds import public_go2

from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.gap.config import GapCfg
from trueup.gap.gap import gap
from trueup.robot.load import Robot, load_robot

_OF_EACH = 12  # windows of each of several recordings


@dataclass(frozen=True, kw_only=True)
class Case:
    """Recordings, the model they are compared with, and what `calibrate` says of the same.

    motion   folders of the arm's motions, judged together if there are several
    turned   joint whose commands are turned round in the recording; exchanged: two whose commands are
    """

    robot: str
    motion: tuple[str, ...] = ()
    model: str
    expected: str
    calibrated: bool = False
    turned: str = ""
    exchanged: tuple[str, ...] = ()


_ONE = "(one motion: see the rows of several)"
_FITTED = ("multisine", "coupled_joints", "chirp_sweep")
_FOUR = (*_FITTED, "random_waypoints")
_EIGHT = (*_FITTED, "friction_gravity", "step_response", "triangle_wave", "prbs_excitation", "velocity_ramp")
REAL = {
    "go2 nominal": Case(
        robot="go2", model="built-in go2", expected="encoder zeros: seven of twelve stand at their bound of 0.1 rad",
    ),
    "go2 damping 2": Case(
        robot="go2", model="public numbers: damping 2, friction 0.2", expected="damping 0.1 to 0.25",
    ),
    "go2 calibrated": Case(robot="go2", model="its calibration (pace)", expected="-", calibrated=True),
    "go2 exchanged": Case(
        robot="go2", model="built-in go2", expected="FL_thigh and FR_calf exchanged (planted)",
        exchanged=("FL_thigh_joint", "FR_calf_joint"),
    ),
    "so101 four motions": Case(
        robot="so101", motion=_FOUR, model="built-in so101",
        expected="pace of three: 18.1 mrad on the fourth, built-in 16.8: do not use it",
    ),
    "so101 eight motions": Case(
        robot="so101", motion=_EIGHT, model="built-in so101",
        expected="with this diagnosis' request: 15.5 mrad held out, built-in 11.4: do not use it; "
        "parts of the data disagree on 18 of 25 parameters",
    ),
    "so101 eight motions, refused fit": Case(
        robot="so101", motion=_EIGHT, model="the fit of the row above, which calibrate refuses", expected="-",
        calibrated=True,
    ),
    **{
        f"so101 {motion}": Case(robot="so101", motion=(motion,), model="built-in so101", expected=_ONE)
        for motion in ("multisine", "friction_gravity", "step_response", "triangle_wave", "prbs_excitation",
                       "velocity_ramp", "frequency_sweep", "random_waypoints")
    },
    "so101 turned": Case(
        robot="so101", motion=("multisine",), model="built-in so101", expected="elbow_flex turned round (planted)",
        turned="elbow_flex",
    ),
}  # fmt: skip


def diagnose_real(key: str, data: Path, fits: Path | None) -> Numbers:
    """What the diagnosis says of one recording."""
    case = REAL[key]
    folder = "go2_air" if case.robot == "go2" else "so101"
    places = [data / folder / one for one in case.motion] or list((data / folder).glob("*.csv*"))
    logs = [_spoiled(read_log(place, folder), case) for place in places]
    params = fits / folder if case.calibrated and fits is not None else None
    if case.calibrated and params is None:
        raise SystemExit("calibrated models need --fits FOLDER")
    with tempfile.TemporaryDirectory() as made:
        robot: Robot = public_go2(Path(made) / "public") if key == "go2 damping 2" else load_robot(case.robot)
        cfg = GapCfg(max_windows=max(48, _OF_EACH * len(logs)))
        found = gap(robot, logs, cfg, params=params).result
    second = found.pairs[0] if found.pairs else None
    return {
        "model": case.model, "calibrate": case.expected,
        "first": found.causes[0].name if found.causes else "no single cause" if found.disagreement else "nothing wrong",
        "evidence": found.causes[0].evidence if found.causes else found.disagreement or "-",
        "others": [f"{one.name}{' (as good)' if one.tied else ''}" for one in found.causes[1:4]],
        "second": "-" if second is None else f"{second.names[1]} adds {second.adds:.0%}",
        "error_mrad": {one.horizon: round(1000.0 * one.error, 2) for one in found.horizons},
    }  # fmt: skip


def _spoiled(log: Log, case: Case) -> Log:
    target = log["target_pos"].copy()
    names = list(log.joint_names)
    if case.turned:
        target[:, names.index(case.turned)] *= -1.0
    if case.exchanged:
        at = [names.index(name) for name in case.exchanged]
        target[:, at] = target[:, at[::-1]]
    return replace(log, signals={**log.signals, "target_pos": target})


def real_section(rows: dict[str, Numbers]) -> str:
    """A table of the recordings."""
    head = (
        "recording",
        "compared with",
        "calibrate found",
        "gap says first",
        "then",
        "second cause",
        "error after 0.1 s, 1 s, mrad",
    )
    lines = []
    for key, row in rows.items():
        error = row["error_mrad"]
        assert isinstance(error, dict)
        assert isinstance(row["others"], list)
        shown = ", ".join(str(error.get(name, "-")) for name in ("0.1 s", "1 s"))
        lines.append((key, row["model"], row["calibrate"], f"**{row['first']}**: {row['evidence']}",
                      ", ".join(row["others"]) or "-", row["second"], shown))  # fmt: skip
    return "\n\n".join(["## Recordings of robots", _TEXT, table(head, lines)])


_TEXT = """Public recordings of a go2 whose legs move in the air (35 s) and of an so101 arm (40 to 120 s each).
The go2's calibration is `trueup calibrate go2_air_35s.csv.gz --mapping go2_air --robot go2 --params pace
--physics 400 --method local --out FITS/go2_air`. What calibrate says of the arm: `trueup loop so101` on the four
motions of `examples/so101` (three fitted, one held out), and `trueup calibrate` of the eight with `--refit` of their
diagnosis (`--max-windows 24 --starts 1 --iterations 10`, two held out). The arm's torque column has no sign: the
diagnosis uses no torques and is not misled by it. Exchanged and turned joints were planted in the recording.

On the arm, single motions name different numbers: fast ones a higher gain or less inertia, slow ones more friction,
which looks like friction that falls with speed; random_waypoints names damping. **One answer is wrong**: triangle_wave,
in which shoulder and elbow move alike, is said to have them exchanged (gain and friction are as good). Of four motions
together no cause is left, as calibrate finds nothing to fit; of eight, a little more friction, which a fit does not
confirm. Calibrations of several motions are refused by `calibrate` itself, because they do worse on motions that were
held out; asked about such a fit, the diagnosis names heat in a log without temperatures, which is not believable.
The four rows of go2 are of earlier code and were not measured again."""
