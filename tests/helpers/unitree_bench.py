"""Unitree twins on loopback DDS, each in a domain that no other test uses, and messages made by hand."""

from __future__ import annotations

import contextlib
import fcntl
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trueup.hardware.driver import Command
from trueup.hardware.drivers.dds import DdsBus, Outbox
from trueup.hardware.drivers.unitree.driver import UnitreeDriver, make_driver
from trueup.hardware.drivers.unitree.motors import wiring_of
from trueup.hardware.drivers.unitree.streams import LOW_CMD
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import Robot, load_robot
from trueup.twin.firmware import Twin
from trueup.twin.speak.unitree import UnitreeSpeaker

_UNUSED = list(range(1, 100))
GO2, G1 = load_robot("go2"), load_robot("g1")


@contextlib.contextmanager
def own_domain() -> Iterator[int]:
    """A DDS domain that no test of any other process holds at the moment, and none of this one has used before.

    Tests of ROS 2 take theirs from 100 on: CycloneDDS keeps a domain's set-up for as long as anything uses it.
    """
    while True:
        domain = random.SystemRandom().choice(_UNUSED)
        with open(Path(tempfile.gettempdir()) / f"trueup-dds-domain-{domain}", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            _UNUSED.remove(domain)
            yield domain
            return


@contextlib.contextmanager
def serving(robot: Robot, **options: Any) -> Iterator[UnitreeSpeaker]:
    """A twin in a thread of this process; tests look at what it counted."""
    with own_domain() as domain:
        cfg = ServeCfg(
            **{"preset": "ideal", "command_hz": 250.0, "speak": "unitree", "place": f"lo?domain={domain}"} | options
        )
        speaker = UnitreeSpeaker(Twin(robot, cfg), cfg)
        thread = threading.Thread(target=speaker.run)
        thread.start()
        try:
            yield speaker
        finally:
            speaker.stop()
            thread.join()
            speaker.close()


@contextlib.contextmanager
def driving(speaker: UnitreeSpeaker, **options: str) -> Iterator[UnitreeDriver]:
    """A driver that is connected to a twin."""
    driver = driver_for(speaker, **options)
    driver.connect()
    try:
        yield driver
    finally:
        driver.close()


def driver_for(speaker: UnitreeSpeaker, **options: str) -> UnitreeDriver:
    """The driver that a twin's reference names; legs are not folded first, which takes seconds."""
    place, _, domain = speaker.reference.removeprefix("unitree:").partition("?domain=")
    return make_driver(speaker.twin.robot, 250.0, place, **{"domain": domain, "stand_down": "0"} | options)


@contextlib.contextmanager
def stranger(speaker: UnitreeSpeaker) -> Iterator[Outbox]:
    """Another program on the network that can write rt/lowcmd: an own DDS participant."""
    place, _, domain = speaker.reference.removeprefix("unitree:").partition("?domain=")
    bus = DdsBus(place, int(domain), "unitree")
    out = bus.outbox(LOW_CMD, wiring_of(speaker.twin.robot.spec).family.low_cmd.sample)
    wait_until(lambda: out.listeners >= 1)
    try:
        yield out
    finally:
        bus.close()


def hold(robot: Robot, pose: np.ndarray | None = None) -> Command:
    """Go to a pose, the default one if none is given, with the robot's gains."""
    zero = np.zeros(robot.spec.njoint)
    pose = robot.spec.default_pose if pose is None else pose
    return Command(target_pos=pose, target_vel=zero, kp=robot.spec.kp, kd=robot.spec.kd, torque=zero)


def wait_until(ready: Any, seconds: float = 5.0) -> None:
    """Wait for something that another thread or process brings about."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.005)
