"""Mutated files: every one ends in success or a TrueupError, within two seconds of processor time and 512 MB.

`TRUEUP_FUZZ=1000` runs that many inputs for each format instead of 200.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mutations import mutate, mutate_inside

from trueup.core.errors import TrueupError
from trueup.core.guarded import GuardedAnswer
from trueup.data.export import export_log, read_export
from trueup.data.import_table import import_log
from trueup.data.log import Log
from trueup.data.mapping import SHIPPED, read_mapping
from trueup.data.tables import read_table
from trueup.data.tables.read import GUARDS

COUNT = int(os.environ.get("TRUEUP_FUZZ", "200"))
SEED = int(os.environ.get("TRUEUP_FUZZ_SEED", "7"))
TIME_LIMIT_S = 2.0
MEMORY_LIMIT = 512 << 20


def sample_log() -> Log:
    t = np.arange(40) / 200.0
    wave = np.sin(np.outer(t, np.arange(1, 4)))
    signals = {"joint_pos": wave, "joint_vel": 2 * wave, "imu_gyro": 3 * wave, "target_kp": np.full((40, 3), 20.0)}
    return Log(time=t, joint_names=("a", "b", "c"), signals=signals, meta={"robot": "x", "source": ["f"]})


def hdf5_bytes(folder: Path) -> bytes:
    h5py = pytest.importorskip("h5py")
    path = folder / "seed.h5"
    log = sample_log()
    with h5py.File(path, "w") as file:
        file["time"] = log.time
        group = file.create_group("state")
        group.create_dataset("q", data=log["joint_pos"], compression="gzip", shuffle=True, chunks=(8, 3))
        group.create_dataset("v", data=log["joint_vel"].astype(np.float32), compression="lzf")
        file.create_dataset("counts", data=np.arange(40), maxshape=(None,), fletcher32=True)
        file["text"] = "hello"
    return path.read_bytes()


def seeds(kind: str, folder: Path) -> list[tuple[str, bytes]]:
    """Return valid files (ending, content) to start from."""
    if kind == "hdf5":
        return [(".h5", hdf5_bytes(folder))]
    if kind == "mapping":
        return [(".toml", path.read_bytes()) for path in sorted(SHIPPED.glob("*.toml"))]
    found = []
    for ending in {"csv": (".csv", ".csv.gz"), "npz": (".npz",), "parquet": (".parquet",)}[kind]:
        if kind == "parquet":
            pytest.importorskip("pyarrow")
        found.append((ending, export_log(sample_log(), folder / f"seed{ending}").read_bytes()))
    if kind == "npz":
        packed = io.BytesIO()
        np.savez_compressed(packed, time=np.arange(40.0), q=np.ones((40, 3), np.float32))
        found.append((".npz", packed.getvalue()))
    if kind == "csv":
        found.append((".csv", b"type,time,q\n" + b'S,0.5,"[1.0, 2.0, -3e-4]"\nS,1.5,"[1, nan, 2]"\n' * 20))
    return found


def use(path: Path, kind: str) -> None:
    """Do with a file what a user would: read all of it, or import a recording with it."""
    if kind == "mapping":
        import_log([path.parent / "recording"], read_mapping(path))
        return
    table = read_table(path)
    if table.note or kind == "npz":
        with contextlib.suppress(TrueupError):
            read_export(path)


def write_recording(folder: Path) -> None:
    """A recording that both shipped mappings take."""
    folder.mkdir()
    names = [f"jpos{i}" for i in range(12)] + [f"jvel{i}" for i in range(12)]
    names += [f"jpos{i}_des" for i in range(12)] + ["kp", "kd", "timestamp", "positions", "velocities", "torques"]
    cells = [*["0.5"] * 38, "{t}", *['"[1, 2, 3, 4, 5, 0.5]"'] * 3]
    rows = [",".join(names), *(",".join(cells).replace("{t}", str(20000 * k)) for k in range(10))]
    for name in ("state_motor.csv", "control.csv"):
        (folder / name).write_text("\n".join(rows) + "\n")


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["csv", "npz", "parquet", "hdf5", "mapping"])
def test_mutated_files_end_in_success_or_trueup_error(
    kind: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    before = peak_bytes()
    guard = GUARDS[{"hdf5": "h5py", "npz": "numpy"}.get(kind, "pyarrow")]
    rng = np.random.default_rng(SEED)
    originals = seeds(kind, tmp_path)
    write_recording(tmp_path / "recording")
    tally = {"success": 0, "refused": 0, "killed": 0}
    refusals: list[tuple[str | None, str]] = []  # the errors themselves would keep their frames alive
    worst_s, worst_child = 0.0, 0
    if kind != "mapping":
        with contextlib.suppress(TrueupError):
            use(_write(tmp_path, originals[0][0], b"warm-up: starts the reading process"), kind)
    for k in range(COUNT):
        ending, original = originals[k % len(originals)]
        path = _write(tmp_path, ending, (mutate_inside(ending, original, rng) if k % 3 else mutate(original, rng)))
        start, guard.last = time.process_time(), GuardedAnswer(kind="ok")
        try:
            use(path, kind)
            tally["success"] += 1
        except TrueupError as error:
            refusals.append((error.file, str(error)))
        worst_s = max(worst_s, time.process_time() - start + guard.last.cpu_s)
        tally["killed"] += guard.last.kind not in ("ok", "refused")
        worst_child = max(worst_child, guard.last.peak_bytes)
    tally["refused"] = len(refusals)
    own = peak_bytes() - before  # other tests may have needed more
    report = {**tally, "worst_s": round(worst_s, 3), "child_mb": worst_child >> 20, "own_growth_mb": own >> 20}
    record_property(kind, str(report))
    print(kind, COUNT, report)
    assert tally["success"] + tally["refused"] == COUNT
    assert all(file is not None for file, _ in refusals), "a message names no file"
    assert max(len(message) for _, message in refusals) < 2000, "a message is a wall of text"
    assert min(tally["refused"], tally["success"]) > COUNT // 50, "the mutations do nothing, or ruin everything"
    assert worst_s < TIME_LIMIT_S
    assert max(worst_child, own) < MEMORY_LIMIT


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _write(folder: Path, ending: str, data: bytes) -> Path:
    path = folder / f"input{ending}"
    path.write_bytes(data)
    return path
