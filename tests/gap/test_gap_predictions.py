"""Predictions of the gate over a planted workspace: two rounds, one that does as predicted and one that does not.

The robot stands still, so that its velocity error is what it was asked for; every number is worked out by hand.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.deploy.session.recording import RowsHeader, RowWriter, column_widths
from trueup.gap.predictions import predictions
from trueup.gap.verbs import PredictionsVerb
from trueup.hardware.policy_rows import FILE, PHASES
from trueup.policy.bundle.certificate import Certificate, Prediction, write_certificate
from trueup.report.operate.predictions import run_predictions
from trueup.robot.load import load_robot

HZ, SECONDS, TORQUE, SPEED = 50.0, 4.0, 2.0, 0.5
KEPT, BROKEN, UNKNOWN = "a" * 64, "b" * 64, "c" * 64


def _certificate(folder: Path, bundle: str) -> None:
    """Predicted: 0.05 to 0.15 m/s, 95 % stay up (90 to 100 %)."""
    told = Prediction(
        metric="velocity_error", unit="m/s", error=0.1, error_low=0.05, error_high=0.15, success=0.95, success_low=0.9,
        success_high=1.0, worlds=20, engines=("mujoco",),
    )  # fmt: skip
    one = Certificate(
        bundle=bundle, name="policy", robot="go2", task="go2-velocity", trials=1, seed=0, engines=("mujoco",),
        inputs={}, checks=(), prediction=told,
    )  # fmt: skip
    folder.mkdir(parents=True)
    write_certificate(one, folder / "policy.bundle.certificate.json")


def _run(folder: Path, bundle: str, forward: float, *, falls: bool = False, rung: str = "full") -> None:
    """A robot that stands, and lies on its side in the last half second where it falls."""
    spec = load_robot("go2").spec
    header = RowsHeader(
        bundle="policy.bundle", bundle_hash=bundle, robot="go2", joint_names=spec.joint_names, control_hz=HZ,
        has_imu=True, settings={}, columns=column_widths(12, 3, 1, 12), meta={"rung": rung},
    )  # fmt: skip
    writer, count = RowWriter(folder / FILE, header), round(SECONDS * HZ)
    for k in range(count):
        lies = falls and k >= count - HZ / 2
        writer.add(
            tick=k, phase=PHASES.index("policy"), time_s=k / HZ, late_s=0.0, joint_pos=spec.default_pose,
            sent_pos=spec.default_pose, joint_vel=np.full(12, SPEED), joint_torque=np.full(12, TORQUE), voltage=24.0,
            joint_temperature=np.full(12, 30.0), imu_gyro=np.zeros(3), command=np.array([forward, 0.0, 0.0]),
            imu_quat=np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0] if lies else [1.0, 0.0, 0.0, 0.0]),
        )  # fmt: skip
    assert writer.close().rows == count


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    """Round 1 does as it was predicted; in round 2 one run falls, and it is asked for five times the error."""
    folder = tmp_path_factory.mktemp("workspace")
    for round_, bundle in ((1, KEPT), (2, BROKEN)):
        _certificate(folder / f"round-{round_}" / "verify", bundle)
    _run(folder / "round-1" / "deploy" / "full-1", KEPT, 0.08)
    _run(folder / "round-1" / "deploy" / "full-2", KEPT, 0.12)
    _run(folder / "round-1" / "deploy" / "ground", KEPT, 0.9, rung="ground")
    _run(folder / "round-2" / "deploy" / "full-1", BROKEN, 0.5)
    _run(folder / "round-2" / "deploy" / "full-2", BROKEN, 0.5, falls=True)
    _run(folder / "other" / "full-1", UNKNOWN, 0.1)
    watts = 12 * TORQUE * SPEED
    score = {"bundle_hash": KEPT, "results": [{"name": "commands", "metrics": {"power": {
        "median": watts, "low": 0.8 * watts, "high": 1.2 * watts}}}]}  # fmt: skip
    (folder / "round-1" / "verify" / "score.json").write_text(json.dumps(score))
    return folder


def test_a_prediction_that_holds_and_one_that_does_not_are_told_apart(workspace):
    found = predictions(workspace)
    kept, broken = found.robots
    assert {one.name: one.inside for one in kept.quantities} == {
        "success": True, "velocity error": True, "power": True,
    }  # fmt: skip
    assert {one.name: one.measured for one in kept.quantities} == pytest.approx(
        {"success": 1.0, "velocity error": 0.1, "power": 12.0}, abs=1e-3
    )
    assert {one.name: one.inside for one in broken.quantities} == {"success": False, "velocity error": False}
    assert {one.name: one.measured for one in broken.quantities} == pytest.approx(
        {"success": 0.5, "velocity error": 0.5}, abs=1e-3
    )


def test_the_workspace_is_summed_up_with_briers_score(workspace):
    found = predictions(workspace)
    assert (found.inside, found.judged, found.runs, found.falls) == (3, 5, 4, 1)
    assert found.expected_falls == pytest.approx(4 * 0.05)
    assert found.brier == pytest.approx((3 * 0.05**2 + 0.95**2) / 4)
    assert found.brier_base == pytest.approx(0.25 * 0.75)


def test_only_runs_of_the_last_rung_with_a_certificate_are_scored(workspace):
    found = predictions(workspace)
    assert [run.name for robot in found.robots for run in robot.runs] == [
        f"round-{round_}/deploy/full-{k}" for round_ in (1, 2) for k in (1, 2)
    ]
    assert found.notes == ("other/full-1: no certificate of its bundle: `trueup verify`",)
    assert [run.fell for run in found.robots[1].runs] == [False, True]


def test_the_command_prints_what_held(workspace, capsys):
    assert run_predictions(PredictionsVerb(workspace, json=True)) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["inside"], printed["judged"]) == (3, 5)
    run_predictions(PredictionsVerb(workspace))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 of 5 quantities lie inside")
    of_runs = [line.split() for line in lines if line.split()[:1] == ["round-2/deploy/full-2"]]
    assert len(of_runs) == 1, "a run has one row, with what it was asked for"
    assert "yes" in of_runs[0]
    assert not {"inside", "outside"} & set(of_runs[0])


def test_a_workspace_that_is_none_is_refused(tmp_path):
    with pytest.raises(TrueupError, match="workspace of `trueup loop`"):
        predictions(tmp_path / "nowhere")
