"""Hashes of artifacts by content: measured rows, numbers, networks; without times and durations.

The file name decides how a file is read. Times of day, durations and paths are left out of JSON, and the clock's
columns out of recordings, so that the same work done twice, or killed and continued, has the same hash.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from trueup.core.arrays import sha256_of, sha256_of_file
from trueup.core.errors import TrueupError

# keys of JSON that say when, where or how fast
_CLOCK = {
    "started", "seconds_taken", "elapsed_s", "minutes", "created", "startup", "folder", "path", "out", "effort",
    "sha256", "below", "timing", "duration_s", "took_s", "wall_s", "cpu_s", "fit_s", "steps_per_s", "film", "log",
    "provenance", "records",
}  # fmt: skip
# folders in which named files lie (their names are kept), and hashes of files byte by byte, which hold times and places
_PLACES = re.compile(r"(?<!\S)/(?:[^/\s]+/)+|\b[0-9a-f]{64}\b")
_CLOCK_CHECKS = {"inference"}  # checks of a certificate that measure this machine (`verify.gate.timing_check`)
_CLOCK_COLUMNS = {"wall_s", "late_s", "step_s", "received", "host_time_s"}


def fingerprint(path: Path) -> str:
    """Hash of a file, or of all files in a folder, by content that depends on the inputs alone."""
    if path.is_dir():
        inside = sorted(one for one in path.rglob("*") if one.is_file())
        return sha256_of([text for one in inside for text in (str(one.relative_to(path)), fingerprint(one))])
    if not path.is_file():
        raise TrueupError("an artifact is missing; run the loop again", file=path)
    match path.suffix:
        case ".mcap":
            return _log(path)
        case ".rows":
            return _rows(path)
        case ".json":
            return sha256_of([json.dumps(_plain(json.loads(path.read_text())), sort_keys=True)])
    return sha256_of_file(path)


def _log(path: Path) -> str:
    from trueup.data.mcap.read import read_mcap

    log = read_mcap(path)
    named = [part for name in sorted(log.signals) for part in (name, log.signals[name])]
    return sha256_of([*log.joint_names, log.time - log.time[:1], *named])


def _rows(path: Path) -> str:
    from trueup.deploy.session.recording import read_rows

    columns = read_rows(path).columns
    return sha256_of([part for name in sorted(set(columns) - _CLOCK_COLUMNS) for part in (name, columns[name])])


def _plain(content: Any) -> Any:
    """JSON without times, durations and paths."""
    if isinstance(content, dict):
        if content.get("name") in _CLOCK_CHECKS:
            return content["name"]
        return {key: _plain(value) for key, value in content.items() if key not in _CLOCK}
    if isinstance(content, str):
        return _PLACES.sub("", content)
    return [_plain(one) for one in content] if isinstance(content, list) else content
