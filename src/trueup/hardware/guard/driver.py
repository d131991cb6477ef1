"""GuardDriver: a `Driver` behind the motor guard, a separate process that survives a crash of this one."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from trueup.core.errors import TrueupError
from trueup.core.files import make_folder
from trueup.hardware import wire
from trueup.hardware.driver import Command, ConnectedWithin, RobotState, connected, damping
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.trip import GuardStatus, GuardSummary, GuardTripped, Trip
from trueup.hardware.wire import Kind
from trueup.robot.load import Robot

_START_S = 90.0  # longest start of a twin on a busy machine
_ANSWER_S = 0.004  # real time: longest wait of `write` for the guard's answer
_STEP_S = 10.0  # lock-step: a control step of a twin
_SILENCE_S, _END_S = 2.0, 8.0
_REAP_S = 0.2  # between the end of the channel and that of the process


class GuardDriver(ConnectedWithin):
    """A `Driver` behind the motor guard.

    reference   of the driver, as after --driver; the guard's process opens it
    out         folder for robot.mcap (every state and the command that followed it, at the robot's rate) and
                events.jsonl (trips, clips, derating); None: nothing is recorded
    command_hz  rate of the driver (a twin that is started gets it); None: the driver's own
    control_hz  rate at which the policy calls `write`; None: the robot's
    lockstep    for twins: time passes only with `write`, by one control period each

    After `connect`: `realtime`, `command_hz`, `control_hz`, `name`. Until the first `write` the guard sends damping.
    `trip` is None or says why the guard stopped the robot; `read` and `write` then raise GuardTripped. `status` is the
    newest report of the guard, `newest` the newest state, `summary` how it went after `close`.
    """

    def __init__(
        self,
        reference: str,
        robot: Robot,
        cfg: GuardCfg | None = None,
        *,
        out: Path | None = None,
        command_hz: float | None = None,
        control_hz: float | None = None,
        lockstep: bool | None = None,
    ) -> None:
        self.joint_names = robot.spec.joint_names
        self.realtime = not lockstep
        self.control_hz = robot.spec.control_hz if control_hz is None else control_hz
        self.command_hz = self.control_hz if command_hz is None else command_hz
        self.name, self.sends_gains = "", True
        self.status = GuardStatus()
        self.newest: RobotState | None = None
        self.summary: GuardSummary | None = None
        self._robot, self._cfg, self._out = robot, cfg or GuardCfg(), out
        self._wanted = {"reference": reference, "command_hz": command_hz, "lockstep": lockstep}
        self._child: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        self._welcome: wire.Welcome | None = None
        self._read_sequence: int | None = None
        self._sequence = self._acknowledged = self._answered = 0
        self._sent: Command | None = None

    # --- Driver ---
    def start(self) -> None:
        """Start the guard's process without waiting; optional, so that it starts up while other work is done."""
        if self._channel is not None:
            raise TrueupError("this driver is connected already")
        if self._out is not None:
            make_folder(self._out)
        self.status, self.newest, self.summary, self._welcome = GuardStatus(), None, None, None
        self._channel = self._spawn()

    def connect(self) -> None:
        """Start the guard, which connects the robot; nothing moves."""
        if self._channel is None or self._welcome is not None:
            self.start()
        try:
            if not self._await(lambda: self._welcome is not None, _START_S):
                raise TrueupError(f"the motor guard did not start within {_START_S:g} s; is the machine overloaded?")
        except BaseException:
            self.close()
            raise
        assert self._welcome is not None
        self.realtime, self.name = not self._welcome.lockstep, self._welcome.name
        self.command_hz, self.sends_gains = self._welcome.command_hz, self._welcome.sends_gains

    def read(self) -> RobotState:
        """Return the newest state that passed the guard's checks, waiting for one if none came since the last call.

        In real time it waits for half a control period at most and then returns the same one again: a policy that waits
        for a robot would fall silent itself. The guard checks the age of states.
        """
        self.poll()
        self._raise_trip()
        if self.newest is None or self.realtime:
            most = _SILENCE_S if self.newest is None else 0.5 / self.control_hz
            self._await(lambda: self.trip is not None or self._has_news, most if self.realtime else _STEP_S)
        self._raise_trip()
        if self.newest is None:
            raise TrueupError("no state comes from the robot; what the guard says: " + (self.status.not_ready or "-"))
        self._read_sequence = self.newest.sequence
        return self.newest

    def write(self, command: Command) -> Command:
        """Send a command to the guard; return the command really sent after its limits.

        In real time that is known after the guard's answer, within milliseconds; if it does not come in time, what is
        returned is the one before.
        """
        self.poll()
        self._raise_trip()
        self._sequence += 1
        self._send(wire.encode_rows(self._sequence, time.monotonic(), command.rows(len(self.joint_names))))
        if self.realtime:
            self._await(lambda: self._answered == self._sequence or self.trip is not None, _ANSWER_S)
        elif not self._await(lambda: self._acknowledged == self._sequence or self.trip is not None, _STEP_S):
            raise TrueupError(f"the motor guard did not answer within {_STEP_S:g} s")
        self._raise_trip()
        return self._sent or command

    def poll(self) -> GuardStatus:
        """Receive waiting frames of the guard, without raising after a trip."""
        self._await(lambda: False, 0.0)
        return self.status

    def damp(self) -> Command:
        """Make the guard damp, for good: a trip with the guard "stop". Returns what is sent."""
        if self.trip is None:
            self._send(wire.encode(Kind.DAMP, self._sequence, time.monotonic()))
            self._await(lambda: self.trip is not None, _SILENCE_S if self.realtime else _STEP_S)
        return damping(self._robot.spec.default_pose, self._robot.spec.kd)

    def close(self) -> None:
        """Damp, end the guard, fetch its summary. Safe to call twice."""
        if self._channel is not None:
            with contextlib.suppress(TrueupError, OSError):
                self._send(wire.encode(Kind.BYE, self._sequence, time.monotonic()))
                self._await(lambda: self.summary is not None, _END_S)
            self._channel.close()
            self._channel = None
        if self._child is not None:
            for push in (None, self._child.terminate, self._child.kill):
                if push is not None:
                    push()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(_END_S)
                    break
            self._child = None

    @property
    def trip(self) -> Trip | None:
        """Why the guard stopped the robot; None while it has not."""
        return self.status.trip

    @property
    def guard_pid(self) -> int:
        """Process id of the guard."""
        if self._child is None:
            raise TrueupError("this driver has no guard running")
        return self._child.pid

    # --- the guard's process ---
    def _spawn(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "trueup.hardware.guard.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=_environment(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the policy; the guard damps when it is gone
            )
            assert self._child.stdin is not None
            with contextlib.suppress(BrokenPipeError), self._child.stdin as pipe:
                pipe.write(self._order(theirs.fileno()) + b"\n")
        return ours

    def _order(self, channel: int) -> bytes:
        robot, out = self._robot, self._out
        order = {
            "channel": channel,
            "cfg": self._cfg,
            "spec": robot.spec,
            "model_path": str(robot.model_path.resolve()),
            "root": None if robot.root is None else str(robot.root.resolve()),
            "built_in": robot.built_in,
            "options": robot.options,
            "control_hz": self.control_hz,
            "out": None if out is None else str(out.resolve()),
        }
        return msgspec.json.encode(order | self._wanted)

    def _last_words(self) -> str:
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        return self._errors.read().decode(errors="replace").strip() or "no reason given"

    # --- frames ---
    @property
    def _has_news(self) -> bool:
        return self.newest is not None and self.newest.sequence != self._read_sequence

    def _send(self, frame: bytes) -> None:
        try:
            connected(self._channel).send(frame, socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
        except BlockingIOError:
            raise TrueupError("the motor guard does not take commands in time") from None
        except OSError:
            self.poll()  # raises with its last words
            raise self._gone() from None

    def _await(self, is_there: Callable[[], bool], timeout_s: float) -> bool:
        """Receive all waiting frames, then wait until the condition holds."""
        channel, deadline = connected(self._channel), time.monotonic() + timeout_s
        while True:
            with contextlib.suppress(BlockingIOError):
                while True:
                    self._take(channel)
            left = deadline - time.monotonic()
            if is_there() or left <= 0.0:
                return is_there()
            select.select([channel], [], [], left)

    def _take(self, channel: socket.socket) -> None:
        data = b""
        for _ in range(2):  # what it sent last comes after the error that it is gone
            with contextlib.suppress(ConnectionError):
                data = channel.recv(wire.MAX_FRAME_BYTES, socket.MSG_DONTWAIT)
                break
        if not data:
            raise self._gone()
        frame = wire.decode(data)
        match frame.kind:
            case Kind.STATE:
                self.newest = wire.parse_state(frame)[0]
            case Kind.COMMAND:
                self._answered, self._sent = frame.sequence, wire.command_of(wire.command_rows(frame))
            case Kind.STATUS:
                self._acknowledged, self.status = frame.sequence, wire.parse_message(frame, frame.kind, GuardStatus)
            case Kind.SUMMARY:
                self.summary = wire.parse_message(frame, Kind.SUMMARY, GuardSummary)
                self.status = self.summary.status
            case Kind.WELCOME:
                self._welcome = wire.parse_welcome(frame)
            case Kind.REFUSAL:
                raise TrueupError(wire.parse_refusal(frame))

    def _raise_trip(self) -> None:
        if self.trip is not None:
            raise GuardTripped(self.trip)

    def _gone(self) -> TrueupError:
        if self.trip is not None:
            return GuardTripped(self.trip)
        code = 0
        if self._child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._child.wait(_REAP_S)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"has ended: {self._last_words()}"
        left = "; the robot is left to its own watchdog" if self._sent is not None else ""
        return TrueupError(f"the motor guard {how}{left}")


def _environment() -> dict[str, str]:
    """Environment of the child: the same package, and no BLAS threads for its small arrays."""
    paths = [str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH", "")]
    python_path = os.pathsep.join(path for path in paths if path)
    return {**os.environ, "PYTHONPATH": python_path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
