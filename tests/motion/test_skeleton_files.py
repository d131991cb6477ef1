"""Skeletons: BVH and SMPL joint positions, which axis is up, metres and centimetres, files that are none."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.motion.readers.bvh import read_bvh
from trueup.motion.readers.open import ReadCfg, open_motion, read_file
from trueup.motion.readers.smpl import JOINTS
from trueup.robot.load import load_robot

BVH = """HIERARCHY
ROOT Hips
{
  OFFSET 0.0 0.0 0.0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
  JOINT LeftUpLeg
  {
    OFFSET 10.0 0.0 0.0
    CHANNELS 3 Zrotation Yrotation Xrotation
    JOINT LeftLeg
    {
      OFFSET 0.0 -400.0 0.0
      CHANNELS 3 Zrotation Yrotation Xrotation
      End Site
      {
        OFFSET 0.0 -5.0 0.0
      }
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.02
0 90 0 0 0 0 0 0 0 0 0 0
0 95 20 90 0 0 0 0 90 0 0 0
"""


@pytest.fixture
def bvh(tmp_path):
    (tmp_path / "walk.bvh").write_text(BVH)
    return tmp_path / "walk.bvh"


def test_a_bvh_becomes_metres_with_z_up(bvh):
    motion = read_bvh(bvh)
    assert motion.rate_hz == pytest.approx(50.0)
    assert motion.body_names == ("Hips", "LeftUpLeg", "LeftLeg", "LeftLeg_end")
    # y up: (x, y, z) -> (x, -z, y); 4 m tall, so centimetres
    np.testing.assert_allclose(motion.body_pos[0, 0], [0, 0, 0.90], atol=1e-9)
    np.testing.assert_allclose(motion.body_pos[0, 1], [0.10, 0, 0.90], atol=1e-9)
    np.testing.assert_allclose(motion.body_pos[0, 2], [0.10, 0, 0.90 - 4.0], atol=1e-9)


def test_rotations_of_a_bvh_act_in_the_order_of_its_channels(bvh):
    motion = read_bvh(bvh)
    # root turned by 90 degrees about z (the file's): x -> y, so the thigh is above the hips, its shin to the side
    np.testing.assert_allclose(motion.body_pos[1, 0], [0, -0.20, 0.95], atol=1e-9)
    np.testing.assert_allclose(motion.body_pos[1, 1], [0, -0.20, 1.05], atol=1e-9)
    # thigh turned by a further 90 degrees about x in its own frame: the shin along -z of the turned frame
    np.testing.assert_allclose(motion.body_pos[1, 2], [0.0, 3.80, 1.05], atol=1e-6)


@pytest.mark.parametrize(
    "text", ["", "HIERARCHY", BVH.replace("0.02", "zero"), BVH.replace("Frames: 2", "Frames: 3"), BVH[:200]]
)
def test_a_broken_bvh_is_named(tmp_path, text):
    (tmp_path / "broken.bvh").write_text(text)
    with pytest.raises(TrueupError, match=r"broken.bvh: is no BVH file"):
        read_file(tmp_path / "broken.bvh", load_robot("g1"), ReadCfg())


def test_a_skeleton_is_not_followed_before_it_is_retargeted(bvh):
    with pytest.raises(TrueupError, match="motion retarget"):
        open_motion(bvh, load_robot("g1"))


def joints():
    pos = np.random.default_rng(0).normal(size=(5, len(JOINTS), 3)) * 0.05
    pos[:, JOINTS.index("head"), 1] += 1.6  # y up
    return pos


def test_smpl_positions_stand_up_and_take_their_rate_from_the_file(tmp_path):
    np.savez(tmp_path / "walk.npz", joints=joints(), mocap_framerate=120.0)
    motion = read_file(tmp_path / "walk.npz", load_robot("g1"), ReadCfg())
    assert (motion.rate_hz, motion.body_names) == (120.0, JOINTS)
    given = joints()
    np.testing.assert_allclose(motion.body_pos, np.stack([given[..., 0], -given[..., 2], given[..., 1]], axis=-1))
    upright = motion.body_pos
    np.save(tmp_path / "again.npy", upright)
    again = read_file(tmp_path / "again.npy", load_robot("g1"), ReadCfg(rate_hz=30.0))
    np.testing.assert_allclose(again.body_pos, upright)  # z is up already


def test_smpl_files_that_lack_something_are_named(tmp_path):
    np.save(tmp_path / "few.npy", np.zeros((5, 7, 3)))
    np.save(tmp_path / "none.npy", np.array([object()], dtype=object))
    np.save(tmp_path / "rate.npy", joints())
    for name, words in (("few", "22 or more"), ("none", "no npy"), ("rate", "--rate")):
        with pytest.raises(TrueupError, match=words):
            read_file(tmp_path / f"{name}.npy", load_robot("g1"), ReadCfg())
