"""Which rates drivers hold over their real transport, against twins that speak the robot's protocol.

    python benchmarks/driver_rates.py [--drivers unitree feetech dynamixel] [--seconds 60] [--fifo]

One process is the twin, one the driver: a thread reads states, another writes commands on an absolute schedule, as the
motor guard does. Lateness is from the due time of a command to the call that sends it; lost is what one side sent and
the other did not get. One function a driver; drivers that are not measured keep their rows from before, and so do rows
at a load average above 20.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from results import RESULTS, publish

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, Driver, RobotState
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import Robot, load_robot

Row = dict[str, Any]
OVERLOADED = 20.0  # load average on two cores


@dataclass(frozen=True, kw_only=True)
class RatesCfg:
    """What is measured."""

    drivers: tuple[str, ...] = ("unitree", "feetech", "dynamixel")
    seconds: float = 60.0
    fifo: bool = False
    """Real-time priority (SCHED_FIFO) for both processes, as a robot's computer gives it; needs the right to."""
    publish: bool = True
    """Write docs/results/driver_rates.md and .json."""


def main(cfg: RatesCfg) -> None:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # sealed truths of a benchmark are nobody's business
    if cfg.fifo:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))  # threads and the twin's process inherit it
    rows = [row | {"fifo": cfg.fifo} for driver in cfg.drivers for row in DRIVERS[driver](cfg)]
    measured = list(rows)
    for row in rows:
        print(json.dumps(row))
    if cfg.publish:
        rows = _kept_rows(rows) + rows
        publish("driver_rates", {"rows": rows}, page(rows))
    if not all(row["holds"] for row in measured):
        sys.exit("a driver does not hold its rate")


# --- drivers ---
def unitree(cfg: RatesCfg) -> list[Row]:
    """go2 and g1 at 500 Hz over DDS on loopback."""
    rows = []
    for k, name in enumerate(("go2", "g1")):
        robot = load_robot(name)
        place = f"lo?domain={100 + os.getpid() % 100 + k}"
        serve = ServeCfg(preset="ideal", command_hz=500.0, speak="unitree", place=place)
        rows.append({"driver": "unitree", **_measure(_unitree_twin, robot, serve, f"unitree:{place}", cfg.seconds)})
    return rows


def _unitree_twin(name: str, serve: ServeCfg, pipe: Connection) -> None:
    """The twin's process: serve until the other end says so, then say what was counted."""
    from trueup.twin.firmware import Twin
    from trueup.twin.server import _speaker

    speaker: Any = _speaker(Twin(load_robot(name), serve), serve)
    threading.Thread(target=lambda: (pipe.recv(), speaker.stop()), daemon=True).start()
    pipe.send("ready")
    speaker.run()
    speaker.close()
    pipe.send(asdict(speaker.twin.tap()))


def feetech(cfg: RatesCfg) -> list[Row]:
    """so101, six servos at 1 Mbit/s on a pseudo-terminal: 100 Hz of states and of commands."""
    return [_measure_servos("feetech", load_robot("so101"), cfg.seconds)]


def dynamixel(cfg: RatesCfg) -> list[Row]:
    """The same arm with servos of the X series."""
    folder = Path(tempfile.mkdtemp()) / "so101"
    shutil.copytree(load_robot("so101").model_path.parent, folder)
    robot = load_robot(folder)
    servos = [f'[[servo]]\njoint = "{name}"\nid = {j}\nzero = 2048' for j, name in enumerate(robot.spec.joint_names)]
    head = 'schema = 1\nprotocol = "dynamixel"\nbaud = 1000000\n[scale]\nkp = 0.01\nkd = 0.0001\ntorque = 0.002'
    (folder / "dynamixel.toml").write_text("\n".join([head, *servos]))
    return [_measure_servos("dynamixel", robot, cfg.seconds)]


def _said(pipe: Connection, process: BaseProcess) -> Any:
    """What the twin's process says next; an error if it has ended without a word."""
    while not pipe.poll(0.1):
        if not process.is_alive():
            raise TrueupError("the twin's process has ended; its words stand above")
    return pipe.recv()


def _measure_servos(protocol: str, robot: Robot, seconds: float, hz: float = 100.0) -> Row:
    """Lost states are questions without a sound answer of all six, lost commands packets that the twin did not get."""
    serve = ServeCfg(preset="ideal", speak=protocol)  # type: ignore[arg-type]
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_servo_twin, args=(robot, serve, there))
    process.start()
    try:
        driver = open_driver(_said(here, process), robot, command_hz=hz)
        driver.connect()
        bus = driver.bus  # type: ignore[attr-defined]
        line: Row = {}
        with echo(line):
            row = {"driver": protocol, **drive(driver, robot, hz, seconds)}
        row |= line
        driver.close()
        here.send("stop")
        heard, overruns = _said(here, process)
    finally:
        process.join(10.0)
        if process.is_alive():
            process.terminate()
    lost = bus.written - heard
    row |= {"robot": robot.spec.name, "commands_lost": lost, "twin_overruns": overruns}
    row |= {
        "states_expected": bus.asked,
        "states_lost": bus.lost,
        "states_rate_hz": round(row["reads"] / row["seconds"], 1),
    }
    row["holds"] = bool(
        row["rate_hz"] > 0.99 * hz and row["states_rate_hz"] > 0.97 * hz and lost <= 0.001 * bus.written
    )
    return row


def _servo_twin(robot: Robot, serve: ServeCfg, pipe: Connection) -> None:
    """The twin's process: serve until the other end says so, then say what was counted."""
    from trueup.hardware.drivers.servos.packet import SYNC_WRITE
    from trueup.twin.firmware import Twin
    from trueup.twin.server import _speaker

    speaker: Any = _speaker(Twin(robot, serve), serve)
    threading.Thread(target=lambda: (pipe.recv(), speaker.stop()), daemon=True).start()
    pipe.send(speaker.reference)
    speaker.run()
    speaker.close()
    pipe.send((speaker.instructions[SYNC_WRITE], speaker.twin.tap().overruns))


@contextlib.contextmanager
def echo(found: Row) -> Iterator[None]:
    """A bare pseudo-terminal beside what is measured: 100 bytes there and back fifty times a second.

    Both ends have the same priority; `found` gets the round trip in ms.
    """
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_echo, args=(there,), daemon=True)
    process.start()
    here.recv()
    try:
        yield
    finally:
        here.send("stop")
        found["line_p50_ms"], found["line_p999_ms"], found["line_max_ms"] = here.recv()
        process.join(10.0)


def _echo(pipe: Connection) -> None:
    ends = os.openpty()
    tty.setraw(ends[1])
    threading.Thread(target=_send_back, args=(ends[1],), daemon=True).start()
    took = []
    pipe.send("ready")
    while not pipe.poll(0.02):
        began, left = time.perf_counter(), 100
        os.write(ends[0], b"x" * left)
        while left:
            left -= len(os.read(ends[0], 200))
        took.append(1e3 * (time.perf_counter() - began))
    pipe.send([round(float(q), 3) for q in np.quantile(took, (0.5, 0.999, 1.0))])


def _send_back(end: int) -> None:
    while True:
        os.write(end, os.read(end, 200))


DRIVERS: dict[str, Callable[[RatesCfg], list[Row]]] = {"unitree": unitree, "feetech": feetech, "dynamixel": dynamixel}


# --- measuring ---
def _measure(twin: Callable[..., None], robot: Robot, serve: ServeCfg, reference: str, seconds: float) -> Row:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=twin, args=(robot.spec.name, serve, there))
    process.start()
    try:
        assert _said(here, process) == "ready"
        driver = open_driver(reference, robot, command_hz=serve.command_hz)
        driver.connect()
        row = drive(driver, robot, serve.command_hz, seconds)
        driver.close()
        here.send("stop")
        tap = _said(here, process)
    finally:
        process.join(10.0)
        if process.is_alive():
            process.terminate()
    sent = driver.sent  # type: ignore[attr-defined]
    lost = sent - tap["commands"]
    row |= {"robot": robot.spec.name, "commands_lost": lost, "twin_overruns": tap["overruns"]}
    row["twin_bad_frames"], row["twin_watchdog"] = tap["bad_frames"], tap["watchdog"]
    row["holds"] = bool(row["rate_hz"] > 0.99 * serve.command_hz and lost <= 0.001 * sent)
    return row


def drive(driver: Driver, robot: Robot, hz: float, seconds: float) -> Row:
    """Write at `hz` for a while beside a reading thread."""
    states: list[RobotState] = [driver.read()]
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            with contextlib.suppress(TrueupError):  # lost, and counted as such: a guard goes on too
                states.append(driver.read())

    reader = threading.Thread(target=read)
    reader.start()
    zero, n, period = np.zeros(robot.spec.njoint), round(seconds * hz), 1.0 / hz
    late, took, missed = [], [], 0
    cpu, start, k = time.process_time(), time.perf_counter(), 0
    while k < n:
        due = start + k * period
        time.sleep(max(0.0, due - time.perf_counter()))
        began = time.perf_counter()
        pose = robot.spec.default_pose + 0.05 * np.sin(2 * np.pi * k / hz)
        driver.write(Command(target_pos=pose, target_vel=zero, kp=robot.spec.kp, kd=robot.spec.kd, torque=zero))
        late.append(began - due)
        took.append(time.perf_counter() - began)
        following = max(k, int((time.perf_counter() - start) / period)) + 1
        missed += following - k - 1
        k = following
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    stop.set()
    reader.join()
    return _figures(states, late, took, missed, hz, wall, cpu)


def _figures(
    states: list[RobotState], late: list[float], took: list[float], missed: int, hz: float, wall: float, cpu: float
) -> Row:
    """Quantiles and losses."""
    expected = round((states[-1].time_s - states[0].time_s) * hz)
    received = states[-1].sequence - states[0].sequence
    quantiles = np.quantile(late, (0.5, 0.99, 0.999, 1.0)) * 1e3
    return {
        "seconds": round(wall, 1),
        "asked_hz": hz,
        "rate_hz": round(len(late) / wall, 1),
        "writes": len(late),
        "missed": missed,
        **{
            f"late_{name}_ms": round(float(q), 3)
            for name, q in zip(("p50", "p99", "p999", "max"), quantiles, strict=True)
        },
        "write_p50_us": round(float(np.median(took)) * 1e6, 1),
        "states_expected": expected,
        "states_received": received,
        "states_lost": expected - received,
        "reads": len(states) - 1,
        "driver_cpu_share": round(cpu / wall, 3),
        "load_average": round(os.getloadavg()[0], 1),
    }


# --- the page ---
def page(rows: list[Row]) -> str:
    """A table of what was measured."""
    columns = {
        "driver": "driver",
        "robot": "robot",
        "fifo": "SCHED_FIFO",
        "seconds": "s",
        "rate_hz": "writes/s",
        "missed": "points missed",
        "late_p50_ms": "late p50 (ms)",
        "late_p99_ms": "p99",
        "late_p999_ms": "p99.9",
        "late_max_ms": "max",
        "commands_lost": "commands lost",
        "states_lost": "states lost",
        "states_expected": "of",
        "line_p999_ms": "bare line there and back, p99.9 (ms)",
        "line_max_ms": "max",
        "driver_cpu_share": "driver's CPU share",
        "load_average": "load average",
    }
    lines = ["# Rates of drivers", "", __doc__.split("\n\n")[2].replace("\n", " "), ""]
    lines += ["| " + " | ".join(columns.values()) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(str(row.get(key, "")) for key in columns) + " |" for row in rows]
    return "\n".join(lines) + (
        "\n\nLoad average above the number of cores: other work ran beside the measurement. *Bare line*: a pseudo-"
        "terminal beside the servos' with nothing but an echo at its other end, at the same priority. Linux hands the "
        "bytes of every terminal and serial port on by a kernel worker of ordinary priority: on a computer with other "
        "work answers come late whatever the priority of the programs, and a question that is given up (15 ms) costs "
        "one or two of the points of a 100 Hz schedule. DDS and UDP do not pass through it.\n"
    )


def _kept_rows(new: list[Row]) -> list[Row]:
    """Rows of drivers that were not measured now, and those under a load that there was not now."""
    path = RESULTS / "driver_rates.json"
    before: list[Row] = json.loads(path.read_text())["rows"] if path.exists() else []
    measured = {_kind(row) for row in new}
    return [row for row in before if _kind(row) not in measured]


def _kind(row: Row) -> tuple[str, bool, bool]:
    """Driver, its priority, and whether the machine was overloaded."""
    return row["driver"], row["fifo"], row["load_average"] > OVERLOADED


if __name__ == "__main__":
    main(tyro.cli(RatesCfg))
