"""Retargeting: targets that fit the robot, feet that stand still, limits kept, hands that stay at what they touch."""

import json
from pathlib import Path

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.motion.bodies import BodyTree
from trueup.motion.made.make import make_motion
from trueup.motion.motion import Motion, read_motion, write_motion
from trueup.motion.readers.smpl import JOINTS
from trueup.motion.retarget.mesh import laplacian
from trueup.motion.retarget.points import NEEDED, KeyPoints, Thing, key_points, with_things
from trueup.motion.retarget.retarget import RetargetCfg, retarget
from trueup.motion.retarget.shape import robot_shape, targets
from trueup.motion.retarget.stance import ground_below, hold_feet, runs
from trueup.robot.load import load_robot

pytest.importorskip("mink")


@pytest.fixture(scope="module")
def g1():
    return load_robot("g1")


@pytest.fixture(scope="module")
def person(g1):
    """The robot's own side step, a third larger, with feet that drift sideways at 4 cm/s and sink 2 cm."""
    points = key_points(make_motion("side_step", g1))
    time = np.arange(len(points))[:, None, None] / points.rate_hz
    pos = 1.33 * points.pos + np.array([0.0, 0.04, 0.0]) * time - np.array([0.0, 0.0, 0.02])
    return KeyPoints(rate_hz=points.rate_hz, names=points.names, pos=pos, source="person")


def skeleton(names, seed=0):
    pos = np.random.default_rng(seed).normal(size=(3, len(names), 3))
    quat = np.tile([1.0, 0, 0, 0], (3, len(names), 1))
    root = {"root_pos": pos[:, 0], "root_quat": quat[:, 0]}
    return Motion(rate_hz=30.0, body_names=tuple(names), body_pos=pos, body_quat=quat, **root)


def test_points_are_found_by_the_names_of_four_kinds_of_skeletons():
    arms = ("Shoulder", "Arm", "ForeArm", "Hand")
    legs = ("UpLeg", "Leg", "Foot", "ToeBase")
    lafan = ["Hips", *(side + limb for side in ("Left", "Right") for limb in (*legs, *arms)), "Head"]
    for names in (lafan, [f"mixamorig:{name}" for name in lafan]):
        found = key_points(skeleton(names))
        np.testing.assert_array_equal(found.of("left_ankle"), skeleton(names).body_pos[:, lafan.index("LeftFoot")])
        np.testing.assert_array_equal(found.of("right_shoulder"), skeleton(names).body_pos[:, lafan.index("RightArm")])
        np.testing.assert_array_equal(found.of("left_toe"), skeleton(names).body_pos[:, lafan.index("LeftToeBase")])
    smpl = key_points(skeleton(JOINTS))
    np.testing.assert_array_equal(smpl.of("right_ankle"), skeleton(JOINTS).body_pos[:, JOINTS.index("right_ankle")])
    np.testing.assert_array_equal(smpl.of("right_toe"), skeleton(JOINTS).body_pos[:, JOINTS.index("right_foot")])
    robot = make_motion("squat", load_robot("g1"))
    wrist = robot.body_names.index("left_wrist_yaw_link")
    np.testing.assert_array_equal(key_points(robot).of("left_wrist"), robot.body_pos[:, wrist])


def test_a_point_that_is_not_found_is_asked_for_and_can_be_named():
    names = ["HandL" if name == "left_wrist" else name for name in JOINTS]
    with pytest.raises(TrueupError, match=r"left wrist.*--points left_wrist=NAME"):
        key_points(skeleton(names))
    found = key_points(skeleton(names), {"left_wrist": "HandL"})
    np.testing.assert_array_equal(found.of("left_wrist"), skeleton(names).body_pos[:, names.index("HandL")])
    with pytest.raises(TrueupError, match="left_paw"):
        key_points(skeleton(names), {"left_paw": "HandL"})


def test_targets_have_the_robots_lengths_and_the_persons_directions(g1, person):
    shape = robot_shape(BodyTree(g1))
    found = targets(person, shape)
    upper = found.pos["left_elbow"] - found.pos["left_shoulder"]
    np.testing.assert_allclose(np.linalg.norm(upper, axis=1), shape.length("shoulder", "elbow"), rtol=1e-9)
    theirs = person.of("left_elbow") - person.of("left_shoulder")
    cosines = np.sum(upper * theirs, axis=1) / np.linalg.norm(upper, axis=1) / np.linalg.norm(theirs, axis=1)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-9)
    lowest = np.minimum(found.pos["left_ankle"][:, 2], found.pos["right_ankle"][:, 2])
    assert np.quantile(lowest, 0.05) == pytest.approx(shape.sole_m, abs=1e-6)


def test_feet_are_held_at_one_place_flat_on_the_ground_while_they_stand(g1, person):
    shape = robot_shape(BodyTree(g1))
    held, stands = hold_feet(targets(person, shape), shape)
    assert 0.5 < stands.mean() < 0.95
    stretches = runs(stands[:, 0])
    assert len(stretches) >= 4  # four steps of the left foot
    for first, last in stretches:
        rows = held.pos["left_ankle"][first:last]
        assert np.ptp(rows, axis=0).max() < 1e-9
        assert rows[0, 2] == pytest.approx(shape.sole_m)
    jumps = np.linalg.norm(np.diff(held.pos["left_ankle"], axis=0), axis=1)
    assert jumps.max() < 0.06  # no jump between standing and swinging


def test_a_retargeted_motion_neither_slides_nor_sinks_and_keeps_its_limits(g1, person):
    found = retarget(person, g1)
    assert found.before.skate_m_s > 0.02
    assert found.after.skate_m_s < 0.003
    assert found.after.penetration_m < 0.002
    assert found.after.beyond_limits_rad < 1e-6
    assert found.after.speed_use <= 1.0 + 1e-6
    assert found.after.colliding == 0.0
    assert found.motion.joint_names == g1.spec.joint_names
    assert found.rows_per_s > 30.0


def test_a_robot_is_kept_off_itself(g1):
    """Arms that a person folds through the trunk: plain inverse kinematics follows them into it."""
    points = key_points(make_motion("squat", g1))
    pos = points.pos[:60].copy()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        middle = points.of("chest")[:60] + np.array([0.0, 0.0, -0.15])
        pos[:, points.names.index(f"{side}_wrist")] = middle
        pos[:, points.names.index(f"{side}_elbow")] = middle + np.array([0.0, sign * 0.15, 0.0])
    found = retarget(KeyPoints(rate_hz=50.0, names=points.names, pos=pos), g1)
    assert found.before.collision_m > 0.02
    assert found.after.collision_m < 0.002


def test_laplacian_coordinates_do_not_change_when_everything_moves_and_do_when_one_point_does():
    places = np.random.default_rng(1).normal(size=(12, 3))
    matrix = laplacian(places)
    np.testing.assert_allclose(matrix.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(matrix @ (places + np.array([1.0, -2.0, 0.5])), matrix @ places, atol=1e-12)
    moved = places.copy()
    moved[4] += np.array([0.1, 0.0, 0.0])
    np.testing.assert_allclose((matrix @ moved - matrix @ places)[4], [0.1, 0.0, 0.0], atol=1e-12)
    flat = np.concatenate([places[:, :2], np.zeros((12, 1))], axis=1)
    assert np.isfinite(laplacian(flat)).all()


def holding(g1, rows=40):
    """The robot's own pose, enlarged and with broader shoulders, with a box between its wrists."""
    points = key_points(make_motion("squat", g1))
    pos = 1.3 * points.pos[:rows]
    names = list(points.names)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        pos[:, names.index(f"{side}_shoulder")] += np.array([0.0, sign * 0.05, 0.0])  # broad
        shoulder = pos[:, names.index(f"{side}_shoulder")]
        pos[:, names.index(f"{side}_elbow")] = shoulder + np.array([0.05, sign * 0.1, -0.3])
        pos[:, names.index(f"{side}_wrist")] = shoulder + np.array([0.35, sign * 0.02, -0.3])
    left, right = (pos[:, names.index(f"{side}_wrist")] for side in ("left", "right"))
    half = 0.5 * np.linalg.norm(left - right, axis=1).min() - 0.055
    box = Thing(
        name="box",
        size=np.array([0.12, half, 0.12]),
        pos=0.5 * (left + right) + np.array([0.06, 0, 0]),
        quat=np.tile([1.0, 0, 0, 0], (rows, 1)),
    )
    return KeyPoints(rate_hz=50.0, names=points.names, pos=pos, things=(box,))


def test_hands_stay_nearer_to_what_they_touch_with_the_mesh_than_without(g1):
    points = holding(g1)
    plain, kept = (retarget(points, g1, RetargetCfg(mesh=mesh)) for mesh in (False, True))
    assert kept.after.touch_m < 0.01
    assert kept.after.touch_m < plain.after.touch_m
    assert kept.after.collision_m < 0.002


def test_feet_stand_on_a_box(g1):
    box = Thing(
        name="step",
        size=np.array([0.2, 0.3, 0.05]),
        pos=np.tile([0.5, 0.0, 0.05], (2, 1)),
        quat=np.tile([1.0, 0, 0, 0], (2, 1)),
    )
    at = np.array([[0.5, 0.1, 0.2], [0.9, 0.1, 0.2]])
    np.testing.assert_allclose(ground_below(at, (box,)), [0.1, 0.0])
    np.testing.assert_allclose(ground_below(at - np.array([0, 0, 0.19]), (box,)), [0.0, 0.0])  # far below its top


def test_things_are_read_from_a_file_and_wrong_ones_are_named(g1, tmp_path):
    points = key_points(make_motion("squat", g1))
    good = {"names": np.array(["floor"]), "size": np.ones((1, 3)), "pos": np.zeros((1, 1, 3))}
    np.savez(tmp_path / "good.npz", **good, quat=np.array([[[2.0, 0, 0, 0]]]))
    found = with_things(points, tmp_path / "good.npz").things
    assert found[0].pos.shape == (len(points), 3)
    np.testing.assert_allclose(found[0].quat[5], [1.0, 0, 0, 0])
    np.savez(tmp_path / "short.npz", **good | {"pos": np.zeros((7, 1, 3))}, quat=np.ones((7, 1, 4)))
    with pytest.raises(TrueupError, match="T 1 or"):
        with_things(points, tmp_path / "short.npz")
    with pytest.raises(TrueupError, match="no such file"):
        with_things(points, tmp_path / "absent.npz")


def test_a_quadruped_is_refused_as_no_humanoid(person):
    with pytest.raises(TrueupError, match="no humanoid"):
        retarget(person, load_robot("go2"))


def smpl_file(points: KeyPoints, path: Path, *, y_up: bool) -> Path:
    joints = np.zeros((len(points), len(JOINTS), 3))
    for k, name in enumerate(JOINTS):
        role = {"left_foot": "left_ankle", "right_foot": "right_ankle", "head": "chest"}.get(name, name)
        role = role if role in NEEDED else "chest" if role == "chest" else "pelvis"
        joints[:, k] = points.of(role)
    for name in ("left_foot", "right_foot"):
        joints[:, JOINTS.index(name)] += np.array([0.15, 0.0, -0.05])
    if y_up:
        joints = np.stack([joints[..., 0], joints[..., 2], -joints[..., 1]], axis=-1)
    np.save(path, joints.astype(np.float32))
    return path


def test_the_verb_makes_a_motion_of_smpl_positions_with_y_up(g1, person, tmp_path, capsys):
    from trueup.motion.verbs import RetargetVerb
    from trueup.report.training.motion import run_retarget

    source = smpl_file(person, tmp_path / "person.npy", y_up=True)
    out = tmp_path / "mine.npz"
    assert run_retarget(RetargetVerb(motion=str(source), out=out, rate=50.0, end=2.0, json=True)) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["after"]["skate_m_s"] < said["before"]["skate_m_s"]
    assert read_motion(out).seconds == pytest.approx(2.0)
    with pytest.raises(TrueupError, match="--rate"):
        run_retarget(RetargetVerb(motion=str(source), out=out))


def test_a_motion_of_another_robot_is_given_to_this_one(g1, tmp_path):
    from trueup.motion.verbs import RetargetVerb
    from trueup.report.training.motion import run_retarget

    write_motion(make_motion("kick", load_robot("g1_23")), tmp_path / "kick.npz")
    verb = RetargetVerb(motion=str(tmp_path / "kick.npz"), of="g1_23", out=tmp_path / "g1.npz", end=1.0)
    assert run_retarget(verb) == 0
    assert read_motion(tmp_path / "g1.npz").joint_names == g1.spec.joint_names
