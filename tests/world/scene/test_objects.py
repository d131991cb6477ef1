"""Objects in a scene: they fall, lie, are pushed; their state, start poses, rows and resuming."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.scene.scene import Mounted, Object, Scene

CUBE = Object(name="cube", shape="box", size=(0.02, 0.02, 0.02), mass=0.05, pos=(0.3, 0.0, 0.1))


def scene(*objects: Object) -> Scene:
    return Scene(robots=(Mounted(robot=load_robot("so101")),), objects=objects or (CUBE,))


def hold(sim: BatchSim, steps: int) -> None:
    for _ in range(steps):
        sim.step(sim.robot.spec.default_pose)


def test_a_free_cube_falls_and_lies_on_the_floor():
    sim = BatchSim(scene(), SimCfg(nsim=2, threads=1))
    np.testing.assert_allclose(sim.object_pose("cube")[0], [0.3, 0, 0.1, 1, 0, 0, 0])
    hold(sim, 5)
    assert (sim.object_vel("cube")[:, 2] < -0.5).all()
    hold(sim, 60)
    np.testing.assert_allclose(sim.object_pose("cube")[:, 2], 0.02, atol=2e-3)
    np.testing.assert_allclose(sim.object_vel("cube"), 0.0, atol=1e-3)


def test_a_cube_lies_on_a_table_that_is_a_fixed_object():
    table = Object(name="table", shape="box", size=(0.1, 0.2, 0.02), free=False, pos=(0.3, 0.0, 0.03))
    sim = BatchSim(scene(CUBE, table), SimCfg(nsim=1, threads=1))
    hold(sim, 60)
    assert sim.object_pose("cube")[0, 2] == pytest.approx(0.07, abs=2e-3)
    np.testing.assert_allclose(sim.object_pose("table"), [[0.3, 0, 0.03, 1, 0, 0, 0]])
    assert not sim.object_vel("table").any()


def test_start_poses_of_objects_are_given_at_reset_row_by_row():
    sim = BatchSim(scene(), SimCfg(nsim=3, threads=1))
    hold(sim, 10)
    before = sim.object_pose("cube")[[0, 2]].copy()
    sim.reset(np.array([1]), objects={"cube": [[0.25, 0.1, 0.02, 1, 0, 0, 0]]})
    np.testing.assert_array_equal(sim.object_pose("cube")[1], [0.25, 0.1, 0.02, 1, 0, 0, 0])
    np.testing.assert_array_equal(sim.object_pose("cube")[[0, 2]], before)
    assert not sim.object_vel("cube")[1].any()


def test_names_that_the_scene_lacks_are_answered_with_those_it_has():
    table = Object(name="table", shape="box", size=(0.1, 0.2, 0.02), free=False)
    sim = BatchSim(scene(CUBE, table), SimCfg(threads=1))
    with pytest.raises(TrueupError, match="no object 'cub'.*cube"):
        sim.object_pose("cub")
    with pytest.raises(TrueupError, match="no sensor 'x'.*it has: none"):
        sim.sensor("x")
    with pytest.raises(TrueupError, match="'table' is fixed"):
        sim.reset(objects={"table": np.zeros(7)})


def test_an_engine_sensor_is_read_by_its_name_and_stays_live():
    def prepare(spec: mujoco.MjSpec) -> None:
        for name, kind in (("first", "FRAMEQUAT"), ("where", "FRAMEPOS")):
            kind = getattr(mujoco.mjtSensor, f"mjSENS_{kind}")
            spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_BODY, objname="cube")

    sim = BatchSim(scene(), SimCfg(nsim=2, threads=1), prepare=prepare)
    where = sim.sensor("where")
    assert where.shape == (2, 3)
    np.testing.assert_allclose(where[0], CUBE.pos)
    hold(sim, 60)
    np.testing.assert_allclose(where[:, 2], 0.02, atol=2e-3)
    assert sim.sensor("first").shape == (2, 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": (0.1,)}, "size of a box is 3 positive numbers"),
        ({"size": (0.1, 0.1, -0.1)}, "3 positive numbers"),
        ({"mass": 0.0}, "mass must be positive"),
        ({"shape": "bax"}, "no shape 'bax'.*box"),
        ({"quat": (0.0, 0.0, 0.0, 0.0)}, "quat not zero"),
    ],
)
def test_impossible_objects_are_refused(wrong, message):
    with pytest.raises(TrueupError, match=message):
        Object(**({"name": "thing", "shape": "box", "size": (0.1, 0.1, 0.1)} | wrong))


def test_two_objects_of_one_name_are_refused():
    with pytest.raises(TrueupError, match="object 'cube' twice"):
        Scene(objects=(CUBE, CUBE))
