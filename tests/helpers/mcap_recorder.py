"""A process to be killed: records at 500 Hz in real time and tells through stdout which rows it appended."""

from __future__ import annotations

import os
import struct
import sys
import time

from mcap_logs import full_log

from trueup.data.mcap.write import LogWriter

RATE_HZ = 500


def main(path: str) -> None:
    """Record rows until killed."""
    log = full_log(rows=100)
    rows = [{name: values[k] for name, values in log.signals.items()} for k in range(len(log))]
    writer = LogWriter(path, log.joint_names, log.meta)
    start = time.monotonic()
    for k in range(RATE_HZ * 600):
        time.sleep(max(start + k / RATE_HZ - time.monotonic(), 0.0))
        time_s = time.monotonic() - start
        writer.append(time_s, **rows[k % len(rows)])
        os.write(1, struct.pack("<Qd", k, time_s))


if __name__ == "__main__":
    main(sys.argv[1])
