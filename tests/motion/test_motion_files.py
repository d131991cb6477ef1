"""Motions on disk and between rates: what is written is read again, what is wrong is named."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.motion.made.make import make_motion
from trueup.motion.motion import Motion, read_motion, write_motion
from trueup.robot.load import load_robot


@pytest.fixture(scope="module")
def squat():
    return make_motion("squat", load_robot("g1"))


def plain(rows=11, rate_hz=10.0):
    time = np.arange(rows) / rate_hz
    turn = 0.5 * time
    return Motion(
        rate_hz=rate_hz,
        root_pos=np.stack([time, 2 * time, np.ones(rows)], axis=1),
        root_quat=np.stack([np.cos(turn / 2), 0 * turn, 0 * turn, np.sin(turn / 2)], axis=1),
        joint_names=("a", "b"),
        joint_pos=np.stack([3 * time, -time], axis=1),
    )


def test_a_written_motion_is_read_again_whole(squat, tmp_path):
    again = read_motion(write_motion(squat, tmp_path / "squat.npz"))
    assert (again.robot, again.source, again.rate_hz) == ("g1", "made:squat", 50.0)
    assert again.joint_names == squat.joint_names
    assert again.body_names == squat.body_names
    for name in ("joint_pos", "root_pos", "root_quat", "body_pos", "body_quat", "contacts"):
        np.testing.assert_array_equal(getattr(again, name), getattr(squat, name))


def test_speeds_are_those_of_the_rows():
    motion = plain()
    np.testing.assert_allclose(motion.joint_vel, [[3.0, -1.0]] * 11)
    np.testing.assert_allclose(motion.root_vel, [[1.0, 2.0, 0.0]] * 11)
    np.testing.assert_allclose(motion.root_spin, [[0, 0, 0.5]] * 11, atol=1e-9)
    assert motion.seconds == 1.0


def test_another_rate_keeps_the_motion():
    motion = plain()
    finer = motion.resampled(25.0)
    assert len(finer) == 26
    np.testing.assert_allclose(finer.root_pos[:, 0], np.arange(26) / 25.0, atol=1e-12)
    np.testing.assert_allclose(finer.joint_vel, [[3.0, -1.0]] * 26)
    np.testing.assert_allclose(finer.root_spin[:, 2], 0.5, rtol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(finer.root_quat, axis=1), 1.0)


def test_a_cut_keeps_the_rows_between_two_times():
    cut = plain().cut(0.2, 0.5)
    np.testing.assert_allclose(cut.root_pos[:, 0], [0.2, 0.3, 0.4, 0.5])
    assert len(cut.joint_pos) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joint_pos": np.zeros((11, 3))}, "joint_pos"),
        ({"root_quat": np.zeros((10, 4))}, "root_quat"),
        ({"rate_hz": 0.0}, "rate"),
        ({"root_pos": np.full((11, 3), np.nan)}, "row 0"),
    ],
)
def test_a_motion_that_does_not_fit_is_refused(change, words):
    given = plain()
    fields = {name: getattr(given, name) for name in ("rate_hz", "root_pos", "root_quat", "joint_names", "joint_pos")}
    with pytest.raises(TrueupError, match=words):
        Motion(**(fields | change))


def test_files_that_are_no_motions_are_named(tmp_path):
    text, other, newer = tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "c.npz"
    text.write_text("no zip")
    np.savez(other, x=np.zeros(3))
    rows = {"rate_hz": 1.0, "root_pos": np.zeros((2, 3)), "root_quat": np.zeros((2, 4)), "joint_pos": np.zeros((2, 0))}
    np.savez(newer, schema=99, **rows)
    for file, words in ((text, "is not a motion"), (other, "motion import"), (newer, "schema 99")):
        with pytest.raises(TrueupError, match=words) as caught:
            read_motion(file)
        assert str(file) in str(caught.value)
    with pytest.raises(TrueupError, match="no such file"):
        read_motion(tmp_path / "absent.npz")


def test_objects_in_an_npz_are_never_unpickled(tmp_path):
    file = tmp_path / "objects.npz"
    np.savez(file, schema=1, root_pos=np.array([object()], dtype=object))
    with pytest.raises(TrueupError, match="is not a motion"):
        read_motion(file)
