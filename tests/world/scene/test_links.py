"""Links: a weld or a shared point, switched on in one simulation and not in the others."""

from __future__ import annotations

import numpy as np
import pytest
from two_arms import two_arms

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.scene.scene import Scene, SceneLink


def lift(sim: BatchSim, steps: int = 50) -> None:
    """Raise the left arm by its shoulder."""
    target = sim.robot.spec.default_pose
    target[1] -= 0.6
    for _ in range(steps):
        sim.step(target)


def test_a_weld_lifts_the_cube_in_its_own_row_only():
    sim = BatchSim(two_arms(), SimCfg(nsim=3, threads=1))
    sim.set_link("left_holds", True, np.array([1]), here=True)
    np.testing.assert_array_equal(sim.link_active("left_holds"), [0, 1, 0])
    lift(sim)
    height = sim.object_pose("cube")[:, 2]
    assert height[1] > 0.1
    np.testing.assert_allclose(height[[0, 2]], 0.04, atol=2e-3)


def test_a_link_that_is_let_go_drops_the_cube_and_a_reset_lets_go():
    sim = BatchSim(two_arms(), SimCfg(nsim=2, threads=1))
    sim.set_link("left_holds", True, here=True)
    lift(sim)
    assert (sim.object_pose("cube")[:, 2] > 0.1).all()
    sim.set_link("left_holds", [False, True])
    lift(sim)
    assert sim.object_pose("cube")[0, 2] < 0.06 < 0.1 < sim.object_pose("cube")[1, 2]
    sim.reset()
    assert not sim.link_active("left_holds").any()
    np.testing.assert_array_equal(sim.batch.expand("eq_data")[1], sim.model.eq_data)


def test_a_shared_point_stays_while_the_cube_turns_about_it():
    sim = BatchSim(two_arms(), SimCfg(nsim=2, threads=1))
    high = np.array([0.0, 0.3, 0.5, 1.0, 0.0, 0.0, 0.0])
    sim.reset(objects={"cube": high})
    sim.set_link("pinned", [True, False], here=True)
    sim.object_vel("cube")[:, 3] = 1.0
    for _ in range(50):
        sim.step(sim.robot.spec.default_pose)
    pose = sim.object_pose("cube")
    up = np.array([2 * (pose[0, 4] * pose[0, 6] + pose[0, 3] * pose[0, 5]),
                   2 * (pose[0, 5] * pose[0, 6] - pose[0, 3] * pose[0, 4]),
                   1 - 2 * (pose[0, 4] ** 2 + pose[0, 5] ** 2)])  # fmt: skip
    np.testing.assert_allclose(pose[0, :3] + 0.04 * up, [0.0, 0.3, 0.54], atol=2e-3)
    assert pose[1, 2] < 0.1


def test_a_held_cube_is_resumed_bit_for_bit():
    sim, other = (BatchSim(two_arms(), SimCfg(nsim=2, threads=1)) for _ in range(2))
    lift(sim, 5)
    sim.set_link("left_holds", [True, False], here=True)
    lift(sim, 5)
    other.restore(sim.state())
    for each in (sim, other):
        lift(each, 20)
    np.testing.assert_array_equal(sim.batch.state, other.batch.state)


def test_unknown_links_and_bodies_are_named():
    sim = BatchSim(two_arms(), SimCfg(threads=1))
    with pytest.raises(TrueupError, match="no link 'left_hold'.*left_holds"):
        sim.set_link("left_hold", True)
    wrong = Scene(links=(SceneLink(name="hold", kind="weld", a="griper"),)).with_robot(load_robot("so101"))
    with pytest.raises(TrueupError, match="link 'hold': no body 'griper'.*gripper"):
        BatchSim(wrong, SimCfg(threads=1))
