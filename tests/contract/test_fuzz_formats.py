"""Mutated files of every format end in success or in a TrueupError that names a file, within two seconds each.

Tables, logs, datasets, databases, model files, presets and layouts have tests of their own (tests/data, robot, twin,
policy). `TRUEUP_FUZZ=200` runs that many inputs for each format instead of 20.
"""

from __future__ import annotations

import os
import resource
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from made_formats import FORMATS
from mutations import mutate, mutate_inside

from trueup.core.errors import TrueupError

COUNT = int(os.environ.get("TRUEUP_FUZZ", "20"))
SEED = int(os.environ.get("TRUEUP_FUZZ_SEED", "7"))
TIME_LIMIT_S, MEMORY_LIMIT = 2.0, 512 << 20


@pytest.mark.medium
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_mutated_files_end_in_success_or_trueup_error(name: str, tmp_path: Path) -> None:
    kind, rng = FORMATS[name], np.random.default_rng([SEED, *name.encode()])
    sound = tmp_path / "sound"
    sound.mkdir()
    files = [file.relative_to(sound) for file in kind.make(sound)]
    kind.use(sound)  # a format that is refused anyway would test nothing
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes, refusals = {"success": 0, "refused": 0}, []
    for k in range(COUNT):
        folder, file = tmp_path / "mutated", files[k % len(files)]
        shutil.copytree(sound, folder)
        original = (sound / file).read_bytes()
        how = mutate if k % 3 == 0 else lambda data, rng, end=file.suffix: mutate_inside(end, data, rng)
        (folder / file).write_bytes(how(original, rng))
        if kind.sign is not None and k % 4:
            kind.sign(folder)
        start = time.process_time()
        try:
            kind.use(folder)
            outcomes["success"] += 1
        except TrueupError as error:
            outcomes["refused"] += 1
            refusals.append((error.file, str(error)))
        except Exception as error:
            shutil.copytree(folder, tmp_path / f"broken-{k}")
            raise AssertionError(f"{name}, mutation {k} of {file}: {type(error).__name__}: {error}") from error
        assert time.process_time() - start < TIME_LIMIT_S, f"{name}, mutation {k} of {file}"
        shutil.rmtree(folder)
    print(name, COUNT, outcomes)
    assert all(file is not None for file, _ in refusals), next(text for file, text in refusals if file is None)
    assert max((len(text) for _, text in refusals), default=0) < 2000, "a message is a wall of text"
    assert outcomes["refused"] > 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_LIMIT >> 10
