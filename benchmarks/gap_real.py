"""Diagnosis of recordings of robots: an so101 arm, a go2 in the air; against nominal, wrong and calibrated models."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from parts import Numbers, table
from transfer_worlds import public_go2

from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.gap.gap import gap
from trueup.robot.load import Robot, load_robot


@dataclass(frozen=True, kw_only=True)
class Case:
    """A recording, the model it is compared with, and what `calibrate` says of the same.

    turned   joint whose commands are turned round in the recording; exchanged: two whose commands are
    """

    robot: str
    motion: str
    model: str
    expected: str
    calibrated: bool = False
    turned: str = ""
    exchanged: tuple[str, ...] = ()


_SO101 = "calibrate sees no difference worth a fit: the built-in arm comes from these recordings"
REAL = {
    "go2 nominal": Case(
        robot="go2", motion="", model="built-in go2",
        expected="encoder zeros: seven of twelve stand at their bound of 0.1 rad",
    ),
    "go2 damping 2": Case(
        robot="go2", motion="", model="public numbers: damping 2, friction 0.2", expected="damping 0.1 to 0.25",
    ),
    "go2 calibrated": Case(robot="go2", motion="", model="its calibration (pace)", expected="-", calibrated=True),
    "go2 exchanged": Case(
        robot="go2", motion="", model="built-in go2", expected="FL_thigh and FR_calf exchanged (planted)",
        exchanged=("FL_thigh_joint", "FR_calf_joint"),
    ),
    **{
        f"so101 {motion}": Case(robot="so101", motion=motion, model="built-in so101", expected=_SO101)
        for motion in ("multisine", "friction_gravity", "step_response")
    },
    "so101 multisine calibrated": Case(
        robot="so101", motion="multisine", model="its calibration (pace)", expected="-", calibrated=True,
    ),
    "so101 turned": Case(
        robot="so101", motion="multisine", model="built-in so101", expected="elbow_flex turned round (planted)",
        turned="elbow_flex",
    ),
}  # fmt: skip


def diagnose_real(key: str, data: Path, fits: Path | None) -> Numbers:
    """What the diagnosis says of one recording."""
    case = REAL[key]
    folder = "go2_air" if case.robot == "go2" else "so101"
    place = next((data / folder).glob("*.csv*")) if case.robot == "go2" else data / folder / case.motion
    log = _spoiled(read_log(place, folder), case)
    params = fits / folder if case.calibrated and fits is not None else None
    if case.calibrated and params is None:
        raise SystemExit("calibrated models need --fits FOLDER")
    with tempfile.TemporaryDirectory() as made:
        robot: Robot = public_go2(Path(made) / "public") if key == "go2 damping 2" else load_robot(case.robot)
        found = gap(robot, log, params=params).result
    second = found.pairs[0] if found.pairs else None
    return {
        "model": case.model, "calibrate": case.expected,
        "first": found.causes[0].name if found.causes else "nothing wrong",
        "evidence": found.causes[0].evidence if found.causes else "-",
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


_TEXT = """Public recordings of a go2 whose legs move in the air (35 s) and of an so101 arm (40 to 120 s each). The
calibrations are `trueup calibrate go2_air_35s.csv.gz --mapping go2_air --robot go2 --params pace --physics 400
--method local --out FITS/go2_air` and, of multisine, chirp_sweep and coupled_joints together, `trueup calibrate ...
--mapping so101 --robot so101 --max-windows 10 --starts 1 --iterations 12 --out FITS/so101`. The arm's
torque column has no sign: the diagnosis uses no torques and is not misled by it. Exchanged and turned joints were
planted in the recording. On the arm the two do not agree: a fit of gains does no better than the built-in arm on other
motions, where the diagnosis, within one motion, sees a gain or friction that is off."""
