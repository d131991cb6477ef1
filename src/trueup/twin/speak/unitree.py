"""A twin with the interface of a Unitree robot: LowState out, LowCmd in, sport mode until it is released.

Switched on, the motion service ("sport mode") holds the default pose, sends its own LowCmd as on the robot, and nobody
else's is obeyed. StandDown folds a quadruped's legs; ReleaseMode ends the service, and the motors only damp until the
first LowCmd. A LowCmd with a wrong checksum is counted (`bad_frames`) and nothing else. Real time only.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.drivers.dds import DdsBus
from trueup.hardware.drivers.unitree.codec import decode_command, encode_command, encode_state
from trueup.hardware.drivers.unitree.crc import is_sound, stamp
from trueup.hardware.drivers.unitree.layout import HEADER
from trueup.hardware.drivers.unitree.motors import wiring_of
from trueup.hardware.drivers.unitree.rpc import NOT_IMPLEMENTED, Service, ServiceReply
from trueup.hardware.drivers.unitree.streams import BMS_STATE, LOW_CMD, LOW_STATE
from trueup.hardware.drivers.unitree.switcher import CHECK_MODE, RELEASE_MODE, SELECT_MODE, SPORT, STAND_DOWN, SWITCHER
from trueup.hardware.twin_cfg import ServeCfg
from trueup.twin.firmware import Twin
from trueup.twin.real_time import ServedTwin

MODE_MACHINE = 5  # g1 with 29 joints
_FOLDED = {"hip": 0.0, "thigh": 1.36, "calf": -2.65}  # rad, a quadruped lying down
_FOLD_S = 1.5
_BMS_HZ = 20.0


class UnitreeSpeaker(ServedTwin):
    """Serves one twin over DDS; `cfg.place` is INTERFACE or INTERFACE?domain=N."""

    def __init__(self, twin: Twin, cfg: ServeCfg) -> None:
        if cfg.lockstep:
            raise TrueupError("a twin that speaks unitree runs in real time, as the robot does; leave out lockstep")
        interface, domain = _place(cfg.place or "lo")
        super().__init__(twin, cfg)
        self.reference = f"unitree:{interface}" + (f"?domain={domain}" if domain else "")
        self._wiring = wiring_of(twin.robot.spec)
        self._family = family = self._wiring.family
        bus = self._bus = DdsBus(interface, domain, "unitree")
        self._commands = bus.inbox(LOW_CMD, family.low_cmd.sample, others_only=True)
        self._states = bus.outbox(LOW_STATE, family.low_state.sample)
        self._sport_commands = bus.outbox(LOW_CMD, family.low_cmd.sample)
        self._battery = None if family.bms_state is None else bus.outbox(BMS_STATE, family.bms_state.sample)
        self._switcher = Service(bus, SWITCHER, self._switch)
        self._sport = Service(bus, SPORT, self._sport_call)
        self._waiting = bus.wait_any(self._commands, self._switcher.requests, self._sport.requests)
        self._periods = 0
        self.mode = ""  # the motion service that runs
        self.ignored = 0  # commands of others while it ran
        self._start_sport_mode(family.sport_mode)

    def close(self) -> None:
        """Leave the network. Safe to call twice."""
        self._bus.close()
        super().close()

    # --- time ---
    def _listen_until(self, due: float, began: float) -> None:
        """Take in commands and calls until the period ends; each command at its own time within the period."""
        while True:
            left = due - time.perf_counter()
            if not self._waiting.wait(max(0, int(left * 1e9))):
                return
            self._receive(self._steps_since(began))
            self._switcher.serve()
            self._sport.serve()
            if left <= 0.0:
                return

    def _pass_period(self) -> None:
        if self.mode:
            self._run_sport_mode()
        super()._pass_period()

    def _report(self) -> None:
        self._periods += 1
        state = self.twin.state()
        record = encode_state(self._wiring, state, tick=round(self.twin.time_s * 1e3), mode_machine=MODE_MACHINE)
        self._send_state(self._family.low_state.to_cdr(stamp(record)))
        bms = self._family.bms_state
        if bms is not None and self._battery is not None and self._periods % round(self._cfg.command_hz / _BMS_HZ) == 1:
            report = bms.new()
            report["bmsvoltage"][0, 0] = round(state.voltage * 1e3)
            self._battery.send(bms.to_cdr(report))

    # --- frames ---
    def _receive(self, ahead: float) -> None:
        for sample in self._commands.take():
            for payload in self._arrived(sample.cdr[4:]):
                self._obey(sample.cdr[:4] + payload, ahead)

    def _obey(self, cdr: bytes, ahead: float) -> None:
        try:
            record = self._family.low_cmd.from_cdr(cdr)
        except TrueupError:
            self.twin.count("bad_frames")
            return
        if not is_sound(record):
            self.twin.count("bad_frames")
        elif self.mode:
            self.ignored += 1
        elif self._family.bms_state is not None and int(record["mode_machine"][0]) != MODE_MACHINE:
            self.twin.count("malformed")
        else:
            rows, free = decode_command(self._wiring, record)
            rows[0, free] = self.twin.robot.spec.default_pose[free]
            self._give(rows, ahead)

    def _send_state(self, cdr: bytes) -> None:
        for payload in self._sent(cdr[4:]):
            with contextlib.suppress(TrueupError):  # a full buffer: lost, as on a real network
                self._states.send(HEADER + payload)

    # --- the motion service ---
    def _switch(self, api_id: int, parameter: str) -> ServiceReply:
        """Calls of the service motion_switcher."""
        if api_id == CHECK_MODE:
            return ServiceReply(0, f'{{"form":"0","name":"{self.mode}"}}')
        if api_id == SELECT_MODE:
            self._start_sport_mode(self._family.sport_mode)
            return ServiceReply(0, "")
        if api_id == RELEASE_MODE:
            self.mode = ""
            self.twin.damp()
            return ServiceReply(0, "")
        return ServiceReply(NOT_IMPLEMENTED, "")

    def _sport_call(self, api_id: int, parameter: str) -> ServiceReply:
        """Calls of the service sport; none but StandDown is needed here."""
        if api_id != STAND_DOWN or not self.mode or not self._family.legs_fold:
            return ServiceReply(NOT_IMPLEMENTED, "")
        self._sport_to = _folded_pose(self.twin)
        return ServiceReply(0, "")

    def _start_sport_mode(self, name: str) -> None:
        self.mode = name
        self._sport_pose = self.twin.robot.spec.default_pose.copy()
        self._sport_to = self._sport_pose

    def _run_sport_mode(self) -> None:
        """Hold the pose, or go on folding the legs; others see the command on the network."""
        spec, step = self.twin.robot.spec, 2.65 / _FOLD_S / self._cfg.command_hz
        self._sport_pose = self._sport_pose + np.clip(self._sport_to - self._sport_pose, -step, step)
        zero = np.zeros(spec.njoint)
        rows = np.stack([self._sport_pose, zero, spec.kp, spec.kd, zero])
        self.twin.plant.push(rows, self.twin.plant.step_count)  # from within: not counted at the tap, no watchdog
        record = stamp(encode_command(self._wiring, rows, MODE_MACHINE))
        with contextlib.suppress(TrueupError):
            self._sport_commands.send(self._family.low_cmd.to_cdr(record))


def _folded_pose(twin: Twin) -> FloatArray:
    """A quadruped lying down, as far as its joints go."""
    spec = twin.robot.spec
    pose = [_FOLDED[name.split("_")[1]] for name in spec.joint_names]
    return np.clip(pose, spec.position_low, spec.position_high)


def _place(text: str) -> tuple[str, int]:
    """Read INTERFACE or INTERFACE?domain=N."""
    interface, _, query = text.partition("?")
    key, _, value = query.partition("=")
    if query and (key != "domain" or not value.isdecimal()):
        raise TrueupError(f"the place of a Unitree twin is INTERFACE or INTERFACE?domain=N, found {text!r}", place=text)
    return interface, int(value) if query else 0
