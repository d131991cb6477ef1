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
from mutations import mutate_inside

from trueup.core.errors import TrueupError
from trueup.data.lerobot.episodes import LerobotCfg, import_dataset
from trueup.data.log import RobotReference

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
CASES = [(version, name) for version, names in FILES.items() for name in names]


@pytest.mark.medium
@pytest.mark.parametrize(("version", "name"), CASES)
def test_mutated_dataset_ends_in_success_or_a_trueup_error(version: str, name: str, tmp_path: Path) -> None:
    one, rng = np.ones(6), np.random.default_rng([7, CASES.index((version, name))])
    gains = {"velocity_limit": one, "torque_limit": one, "kp": one, "kd": one, "default_pose": one}
    robot = RobotReference(joint_names=JOINTS, position_low=-one, position_high=one, control_hz=50.0, **gains)
    whole = make_dataset(tmp_path / "whole", [plain_episode(12), plain_episode(9)], version=version)
    sound, refused = (whole / name).read_bytes(), 0
    for k in range(COUNT):
        root = tmp_path / str(k)
        shutil.copytree(whole, root)
        (root / name).write_bytes(mutate_inside(Path(name).suffix, sound, rng))
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
