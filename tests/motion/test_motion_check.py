"""What is wrong with a motion is named, and what is right is not."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from trueup.motion.bodies import complete
from trueup.motion.check import check_motion
from trueup.motion.made.make import make_motion
from trueup.motion.mend import mend_motion
from trueup.motion.motion import write_motion
from trueup.robot.load import load_robot

ROBOT = load_robot("g1")
WALK = make_motion("walk", ROBOT)
KNEE = ROBOT.spec.joint_names.index("left_knee_joint")


def codes(motion):
    return {one.code for one in check_motion(motion, ROBOT).findings}


def joints(change):
    moved = WALK.joint_pos.copy()
    change(moved)
    return complete(replace(WALK, joint_pos=moved), ROBOT)


def root(offset):
    return complete(replace(WALK, root_pos=WALK.root_pos + offset), ROBOT)


def odd(rows):
    def change(moved):
        moved[rows] += 0.9

    return change


def straightened(moved):
    moved[:, KNEE] -= 1.5


TIME = np.arange(len(WALK))[:, None] / WALK.rate_hz
SPOILT = {
    "one odd row": (joints(odd([150])), "jump"),
    "two odd rows": (joints(odd([150, 151])), "jump"),
    "a first row of another pose": (joints(odd([0])), "jump"),
    "too low": (root([0, 0, -0.06]), "penetration"),
    "too high": (root([0, 0, 0.1]), "floating"),
    "drifting": (root(TIME * [0.2, 0, 0]), "skate"),
    "quaternions in the wrong order": (replace(WALK, root_quat=WALK.root_quat[:, [1, 2, 3, 0]]), "quaternion_order"),
    "long quaternions": (replace(WALK, root_quat=1.1 * WALK.root_quat), "quaternion_norm"),
    "a knee that bends backwards": (joints(straightened), "limits"),
    "too fast": (replace(WALK, rate_hz=1000.0), "speed"),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_spoilt_motion_is_found_and_what_to_do_is_said(case):
    motion, code = SPOILT[case]
    found = [one for one in check_motion(motion, ROBOT).findings if one.code == code]
    assert found, codes(motion)
    assert len(found[0].fix) > 20


@pytest.mark.parametrize("name", ["squat", "arm_raise", "side_step", "walk", "turn", "kick", "jump"])
def test_the_made_motions_have_nothing_wrong(name):
    report = check_motion(make_motion(name, ROBOT), ROBOT)
    assert report.usable
    assert not {one.code for one in report.findings} & {"jump", "limits", "quaternion_order", "penetration", "speed"}


def test_mending_drops_first_rows_holds_limits_and_puts_it_on_the_ground():
    for case in ("a first row of another pose", "too low", "too high"):
        motion, code = SPOILT[case]
        mended, done = mend_motion(motion, ROBOT)
        assert done
        assert code not in codes(mended)
    beyond, _ = mend_motion(SPOILT["a knee that bends backwards"][0], ROBOT)
    assert "limits" not in codes(beyond)


@pytest.mark.medium
def test_the_verb_says_what_to_do_and_its_exit_code_tells(tmp_path):
    file = write_motion(SPOILT["one odd row"][0], tmp_path / "odd.npz")
    words = [sys.executable, "-m", "trueup.cli", "motion", "check", str(file)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "jump" in found.stdout
    assert "do: cut the motion there" in found.stdout
