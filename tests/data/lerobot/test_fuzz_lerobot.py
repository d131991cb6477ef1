"""Mutated LeRobot datasets: success or a TrueupError, never another exception, within two seconds each.

`TRUEUP_FUZZ=1000` runs that many inputs for each file instead of 40.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from made_lerobot import JOINTS, make_dataset, plain_episode

from trueup.core.errors import TrueupError
from trueup.data.lerobot.episodes import LerobotCfg, import_dataset
from trueup.data.log import Reference

COUNT = int(os.environ.get("TRUEUP_FUZZ", "40"))
TIME_LIMIT_S = 2.0
FILES = {
    "v3.0": (
        "meta/info.json",
        "meta/tasks.parquet",
        "meta/episodes/chunk-000/file-000.parquet",
        "data/chunk-000/file-000.parquet",
    ),
    "v2.1": ("meta/tasks.jsonl", "meta/episodes.jsonl", "data/chunk-000/episode_000000.parquet"),
}
WORDS = [b"1e999", b"NaN", b"-1", b"9999999999999999999", b'"', b"{", b"]", b"null", b"\x00", b"\xff" * 4, b"[" * 3000]
CASES = [(version, name) for version, names in FILES.items() for name in names]


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """Bits flipped, bytes overwritten, pieces cut out, doubled or cut off, words put in."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at, n = int(rng.integers(max(len(out), 1))), int(rng.integers(1, 65))
        match int(rng.integers(6)):
            case 0:
                out[at] ^= 1 << int(rng.integers(8))
            case 1:
                out[at : at + n] = rng.integers(0, 256, n, dtype=np.uint8).tobytes()
            case 2:
                del out[at : at + n]
            case 3:
                out[at:at] = out[at : at + n]
            case 4:
                out[at : at + 4] = WORDS[int(rng.integers(len(WORDS)))]
            case _:
                del out[at:]
        out = out or bytearray(b"x")
    return bytes(out)


@pytest.mark.medium
@pytest.mark.parametrize(("version", "name"), CASES)
def test_mutated_dataset_ends_in_success_or_a_trueup_error(version: str, name: str, tmp_path: Path) -> None:
    one, rng = np.ones(6), np.random.default_rng([7, CASES.index((version, name))])
    gains = {"velocity_limit": one, "torque_limit": one, "kp": one, "kd": one, "default_pose": one}
    robot = Reference(joint_names=JOINTS, position_low=-one, position_high=one, control_hz=50.0, **gains)
    whole = make_dataset(tmp_path / "whole", [plain_episode(12), plain_episode(9)], version=version)
    sound, refused = (whole / name).read_bytes(), 0
    for k in range(COUNT):
        root = tmp_path / str(k)
        shutil.copytree(whole, root)
        (root / name).write_bytes(mutate(sound, rng))
        start = time.process_time()
        try:
            found = list(import_dataset(root, robot, LerobotCfg(units="degrees")))
            assert all(np.isfinite(log["joint_pos"]).all() for _, log in found)
        except TrueupError as error:
            refused += 1
            assert error.file is not None
        assert time.process_time() - start < TIME_LIMIT_S
        shutil.rmtree(root)
    assert 0 < refused <= COUNT  # mutations that nobody noticed would test nothing
