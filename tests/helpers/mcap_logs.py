"""Logs and foreign recordings that the MCAP tests share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from mcap.writer import CompressionType
from mcap_ros2.writer import Writer

from trueup.data.log import SIGNALS, Log
from trueup.data.mcap.ros2 import definition

JOINTS = tuple(f"{leg}_{joint}_joint" for leg in ("FL", "FR", "RL", "RR") for joint in ("hip", "thigh", "calf"))


def full_log(rows: int = 60, rate_hz: int = 500, seed: int = 0, joints: tuple[str, ...] = JOINTS) -> Log:
    """A log with every signal there is; times are whole nanoseconds."""
    rng = np.random.default_rng(seed)
    signals = {}
    for name, (columns, _) in SIGNALS.items():
        width = len(joints) if isinstance(columns, str) else columns
        signals[name] = rng.normal(size=(rows, width))
    for name in ("base_quat", "imu_quat"):
        signals[name] /= np.linalg.norm(signals[name], axis=1, keepdims=True)
    step_ns = 1_000_000_000 // rate_hz
    meta = {"robot": "go2", "seed": 7, "gains": [20.0, 0.5], "note": "Grüße"}
    return Log(time=np.arange(rows) * step_ns / 1e9, joint_names=joints, signals=signals, meta=meta)


def assert_same(left: Log, right: Log) -> None:
    """Equal bit for bit, NaN included."""
    assert left.joint_names == right.joint_names
    assert left.time.tobytes() == right.time.tobytes()
    assert list(left.signals) == list(right.signals)
    for name, values in left.signals.items():
        assert values.tobytes() == right[name].tobytes(), name
    assert left.meta == right.meta


def joint_state(time_s: float, names: list[str], **fields: list[float]) -> dict[str, object]:
    """A JointState for mcap-ros2-support's writer."""
    whole = int(time_s)
    stamp = {"sec": whole, "nanosec": round((time_s - whole) * 1e9)}
    return {"header": {"stamp": stamp, "frame_id": "base"}, "name": names, **fields}


class ForeignBag:
    """An MCAP file as another tool writes it (mcap-ros2-support)."""

    def __init__(self, path: Path, compression: CompressionType = CompressionType.ZSTD) -> None:
        self._file = path.open("wb")
        self._writer = Writer(self._file, compression=compression)
        self._schemas: dict[str, object] = {}

    def add(self, topic: str, message_type: str, message: dict[str, object], log_time_s: float) -> None:
        """Write one message."""
        if message_type not in self._schemas:
            name = message_type.replace("/", "/msg/")
            self._schemas[message_type] = self._writer.register_msgdef(name, definition(message_type))
        time_ns = round(log_time_s * 1e9)
        schema = self._schemas[message_type]
        self._writer.write_message(topic, schema, message, log_time=time_ns, publish_time=time_ns)

    def close(self) -> None:
        """Finish the file."""
        self._writer.finish()
        self._file.close()
