"""The doctor: findings with verdicts and advice, measured speeds, estimates that can be checked by hand."""

from __future__ import annotations

import io
import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from trueup.core.errors import TrueupError
from trueup.doctor import checks as doctor
from trueup.doctor.checks import Diagnosis, DoctorVerb, MachineCheck
from trueup.doctor.packages import Package
from trueup.doctor.speed import Speed, estimate_costs, measure_speed
from trueup.report.doctor import as_dict, duration, exit_status, run_doctor, show

SPEED = Speed(
    robot="go2",
    threads=2,
    steps_per_s_one=60_000.0,
    steps_per_s_all=100_000.0,
    physics_hz=200.0,
    control_hz=50.0,
    frame_s=0.05,
)


@pytest.mark.medium
def test_everything_is_checked_and_measured_on_this_machine():
    diagnosis = doctor.diagnose(seconds=0.2)
    names = [check.name for check in diagnosis.checks]
    for name in ("python", "cores", "load", "memory", "disk", "threads", "physics", "films", "ffmpeg", "browser"):
        assert name in names
    assert any(name.startswith("packages") for name in names)
    assert all(check.advice for check in diagnosis.checks if check.status != "ok")
    assert diagnosis.speed is not None
    assert diagnosis.speed.steps_per_s_one > 1000
    assert diagnosis.speed.frame_s is not None
    assert 0.0005 < diagnosis.speed.frame_s < 10.0


def test_speed_is_steps_of_all_simulations_over_time(monkeypatch):
    """The clock advances 1/8 s a look: 3 rounds of 8 robots, 4 steps each, until 0.5 s are over."""
    ticks = itertools.count()
    monkeypatch.setattr("trueup.doctor.speed.time.perf_counter", lambda: 0.125 * next(ticks))
    speed = measure_speed(2, seconds=1.0, nsim=8)
    assert speed.steps_per_s_one == 3 * 8 * 4 / 0.5
    assert speed.steps_per_s_all == 3 * 8 * 4 / 0.5
    assert (speed.threads, speed.physics_hz, speed.control_hz) == (2, 200.0, 50.0)


def test_estimates_follow_from_speed_by_hand():
    costs = {cost.what: cost for cost in estimate_costs(SPEED)}
    assert costs["film 5 s"].seconds == pytest.approx(150 * 0.05)
    assert "1280 x 720" in costs["film 5 s"].assumes
    assert costs["step 1 million control steps"].seconds == pytest.approx(4e6 / 1e5)  # 4 physics steps each
    assert costs["fit 36 parameters to 20 s of log"].seconds == pytest.approx(456 * 20 * 200 / 1e5)
    training = next(cost for what, cost in costs.items() if what.startswith("train for 15 minutes"))
    assert "11 million control steps" in training.what  # 900 s * 0.5 * 100 000 / 4 = 11.25 million
    assert training.seconds == 900
    assert all(cost.assumes for cost in costs.values())


def test_films_have_no_estimate_where_nothing_can_be_drawn():
    assert not any("film" in cost.what for cost in estimate_costs(replace(SPEED, frame_s=None)))


def test_old_python_fails():
    assert doctor.check_python((3, 10)).status == "fail"
    assert doctor.check_python((3, 11)).status == "ok"


def test_missing_extra_warns_with_the_command_and_missing_core_fails():
    wanted = [
        Package(name="numpy", extra="core", bounds=">=2.1", installed="1.26.0"),
        Package(name="mujoco", extra="sim", bounds=">=3.17", installed=None),
        Package(name="plotly", extra="report", bounds=">=6.0", installed="7.1.0"),
        Package(name="pytest", extra="dev", bounds=">=8", installed=None),
    ]
    checks = {check.name: check for check in doctor.check_packages(wanted)}
    assert checks["packages: core"].status == "fail"
    assert "numpy>=2.1" in checks["packages: core"].advice
    assert checks["packages: sim"].status == "warn"
    assert checks["packages: sim"].found == "mujoco missing"
    assert "pip install 'trueup[sim]'" in checks["packages: sim"].advice
    assert checks["packages: report"].status == "ok"
    assert "packages: dev" not in checks


def test_bare_checkout_is_a_warning():
    (check,) = doctor.check_packages([])
    assert check.status == "warn"
    assert "pip install -e" in check.advice


def test_more_threads_than_cores_warns(monkeypatch):
    monkeypatch.setattr("trueup.core.machine.usable_cores", lambda: 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "16")
    assert doctor.check_threads().status == "warn"
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert doctor.check_threads().status == "ok"
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert doctor.check_threads().status == "ok"


@pytest.mark.parametrize(("free", "status"), [(50e6, "fail"), (1e9, "warn"), (50e9, "ok")])
def test_disk_is_judged_by_what_is_left(monkeypatch, free, status):
    monkeypatch.setattr("trueup.core.machine.free_disk_bytes", lambda: int(free))
    assert doctor.check_disk().status == status


def test_busy_and_small_machines_warn(monkeypatch):
    monkeypatch.setattr("trueup.core.machine.usable_cores", lambda: 1)
    monkeypatch.setattr("trueup.core.machine.load_average", lambda: 3.0)
    monkeypatch.setattr("trueup.core.machine.free_memory_bytes", lambda: int(3e8))
    monkeypatch.setattr("trueup.core.machine.find_browser", lambda: None)
    checks = (doctor.check_cores(), doctor.check_load(), doctor.check_memory(), doctor.check_browser())
    assert [check.status for check in checks] == ["warn"] * 4
    assert all(check.advice for check in checks)


def test_what_does_not_work_is_a_finding_with_the_errors_advice(monkeypatch):
    def broken() -> str:
        raise TrueupError("no OpenGL; install libegl1")

    monkeypatch.setattr("trueup.doctor.speed.measure_frame_s", broken)
    monkeypatch.setattr("trueup.doctor.speed.measure_speed", lambda *_, **__: SPEED)
    diagnosis = doctor.diagnose()
    films = next(check for check in diagnosis.checks if check.name == "films")
    assert films.status == "warn"
    assert "install libegl1" in films.advice


def test_slow_physics_warns(monkeypatch):
    slow = replace(SPEED, steps_per_s_all=5000.0)
    monkeypatch.setattr("trueup.doctor.speed.measure_speed", lambda *_, **__: slow)
    monkeypatch.setattr("trueup.doctor.speed.measure_frame_s", lambda: 0.05)
    physics = next(check for check in doctor.diagnose().checks if check.name == "physics")
    assert physics.status == "warn"
    assert "5,000 on 2" in physics.found


@pytest.mark.medium
def test_without_a_simulator_the_doctor_says_so_instead_of_crashing(tmp_path: Path):
    """In a fresh process where importing mujoco fails."""
    (tmp_path / "mujoco.py").write_text("raise ModuleNotFoundError(\"No module named 'mujoco'\", name='mujoco')\n")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from trueup.doctor.checks import DoctorVerb\n"
        "from trueup.report.doctor import run_doctor\n"
        "sys.exit(run_doctor(DoctorVerb(json=True)))"
    )
    source = str(Path(doctor.__file__).parents[2])
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r})\n{script}", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    findings = json.loads(result.stdout)
    physics = next(check for check in findings["checks"] if check["name"] == "physics")
    assert physics == {"name": "physics", "status": "warn", "found": "no mujoco", "advice": "pip install 'trueup[sim]'"}
    assert findings["speed"] is None
    assert findings["costs"] == []


# printing


def diagnosis(status: str = "ok") -> Diagnosis:
    checks = [
        MachineCheck(name="python", status="ok", found="3.11.7"),
        MachineCheck(name="disk", status="ok", found="9 GB"),
    ]
    checks.append(MachineCheck(name="odd", status=status, found="[red]x[/red]", advice="do [this]"))  # type: ignore[arg-type]
    return Diagnosis(checks=checks, speed=SPEED)


def test_table_shows_findings_advice_and_costs_as_plain_text():
    out = io.StringIO()
    show(diagnosis("warn"), Console(file=out, width=120))
    text = out.getvalue()
    for part in ("python", "3.11.7", "warn", "[red]x[/red]", "-> do [this]", "film 5 s", "7.5 s", "18 s", "15 min"):
        assert part in text


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("warn", 0), ("fail", 1)])
def test_only_failures_make_the_exit_status(status, code):
    assert exit_status(diagnosis(status)) == code
    assert as_dict(diagnosis(status))["ok"] is (code == 0)


def test_json_is_json_whatever_the_terminals_width(monkeypatch):
    monkeypatch.setattr("trueup.report.doctor.diagnose", lambda: diagnosis("fail"))
    out = io.StringIO()
    assert run_doctor(DoctorVerb(json=True), Console(file=out, width=20)) == 1
    findings = json.loads(out.getvalue())
    assert findings["checks"][2]["advice"] == "do [this]"
    assert findings["speed"]["threads"] == 2
    assert len(findings["costs"]) == 4


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.44, "0.4 s"), (41.2, "41 s"), (900, "15 min"), (9000, "2.5 h"), (7199, "120 min")]
)
def test_durations_read_naturally(seconds, text):
    assert duration(seconds) == text
