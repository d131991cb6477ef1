"""Choosing among snapshots: the one that stands is better than those that were spoiled."""

import numpy as np
import pytest
from made_suites import STAND, suite_file

from trueup.core.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import load_bundle
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.train.config import Budget, RunCfg
from trueup.train.folder import RunFolder
from trueup.train.train import train
from trueup.verify.select import select_bundle, select_snapshot

ONE = STAND.partition('[[scenario]]\nname = "limp"')[0].replace("seconds = 1.0", "seconds = 2.0")
CFG = RunCfg(
    task="go2-velocity",
    nenv=4,
    threads=1,
    learner=PpoCfg(steps=4, minibatches=1, epochs=1, net=NetCfg(actor=(8,), critic=(8,))),
)


def answer(folder: RunFolder, iteration: int, value: float) -> None:
    """Let a snapshot's policy answer `value` whatever it sees."""
    place = folder.snapshots.root / f"{iteration:08d}"
    found = read_checkpoint(place)
    arrays = {name: np.zeros_like(one) if "actor" in name else one for name, one in found.arrays.items()}
    arrays["policy/actor/1/bias"] = arrays["policy/actor/1/bias"] + np.float32(value)
    write_checkpoint(place, Checkpoint(arrays=arrays, facts=found.facts))


@pytest.mark.medium
def test_the_snapshot_that_stands_is_chosen_and_exported(tmp_path):
    train(CFG, tmp_path / "run", Budget(steps=76 * 16))
    folder = RunFolder(tmp_path / "run")
    assert folder.snapshot_iterations() == [25, 50, 75]
    answer(folder, 50, 0.0)
    answer(folder, 75, 8.0)
    best, other = select_snapshot(folder.path, scenarios=str(suite_file(tmp_path, ONE)), trials=4, threads=1)
    assert (best.iteration, other.iteration) == (50, 75)  # 25 is in the first half of the run
    assert best.success == 1.0
    assert other.success == 0.0
    bundle = load_bundle(select_bundle(folder.path, (best, other)))
    assert bundle.path == folder.path / "best.bundle"
    rows = np.ones((3, bundle.passport.policy.observation.nactor), np.float32)
    np.testing.assert_array_equal(bundle.runner(3).act(rows), np.zeros((3, 12)))


def test_a_run_without_snapshots_is_refused(tmp_path):
    train(CFG, tmp_path / "run", Budget(steps=2 * 16))
    with pytest.raises(TrueupError, match="no snapshots"):
        select_snapshot(tmp_path / "run")
