"""Objects in a scene: they fall, lie, are pushed; their state, start poses, rows and resuming."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.randomization.randomize import Draw, Randomizer
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


# --- an arm and a cube ---
BESIDE = Object(name="cube", shape="box", size=(0.03, 0.03, 0.03), mass=0.05, pos=(0.25, 0.12, 0.03))
LOW = np.array([0.0, 0.1, 0.3, 0.9, 0.0, 0.3])  # the jaw 3 cm above the floor, at y = 0


def sweep(sim: BatchSim, steps: int = 60, start: int = 0) -> None:
    """Turn the lowered arm about its shoulder, through the place of the cube."""
    for t in range(start, start + steps):
        target = LOW.copy()
        target[0] = -min(0.9, 0.03 * t)
        sim.step(target)


def lowered(scene: Scene, cfg: SimCfg) -> BatchSim:
    sim = BatchSim(scene, cfg)
    qpos = np.tile(sim.default_qpos, (sim.nsim, 1))
    qpos[:, sim.index.qpos] = LOW
    sim.reset(qpos=qpos)
    return sim


def test_the_arm_pushes_the_cube():
    sim = lowered(scene(BESIDE), SimCfg(nsim=1, threads=1))
    sweep(sim, 8)  # not there yet
    np.testing.assert_allclose(sim.object_pose("cube")[0, :3], BESIDE.pos, atol=1e-3)
    sweep(sim, 60, start=8)
    assert not sim.diverged.any()
    y, z = sim.object_pose("cube")[0, 1:3]
    assert y > BESIDE.pos[1] + 0.03
    assert z == pytest.approx(0.03, abs=2e-3)


def test_a_row_with_an_object_is_the_same_alone_and_among_others():
    def run(nsim: int, threads: int, row: int) -> np.ndarray:
        sim = lowered(scene(BESIDE), SimCfg(nsim=nsim, threads=threads, first_row=row))
        Randomizer(sim, RANGES).apply()
        sweep(sim)
        return sim.batch.state

    np.testing.assert_array_equal(run(5, 2, 0)[3:4], run(1, 1, 3))


def test_a_simulation_with_an_object_is_resumed_bit_for_bit():
    sim, other = (lowered(scene(BESIDE), SimCfg(nsim=2, threads=1)) for _ in range(2))
    sweep(sim, 25)
    other.restore(sim.state())
    for each in (sim, other):
        sweep(each, 25, start=25)
    np.testing.assert_array_equal(sim.batch.state, other.batch.state)


# --- parameters ---
RANGES = {
    "object_mass": Draw(operation="scale", low=0.5, high=2.0, of=("cube",), factor=True),
    "object_friction": Draw(operation="set", low=0.2, high=1.2, of=("cube",)),
}


def test_mass_and_friction_of_an_object_are_drawn_for_each_simulation():
    sim = BatchSim(scene(CUBE, Object(name="ball", shape="sphere", size=(0.02,))), SimCfg(nsim=50, threads=1))
    randomizer = Randomizer(sim, RANGES)
    randomizer.apply()
    mass, friction = sim.params.get("object_mass"), sim.params.get("object_friction")
    assert (mass[:, 1] == 0.1).all()  # the ball's
    assert (friction[:, 1] == 0.8).all()
    assert 0.025 <= mass[:, 0].min() < 0.035 < 0.09 < mass[:, 0].max() <= 0.1
    assert 0.2 <= friction[:, 0].min() < 0.4 < 1.0 < friction[:, 0].max() <= 1.2
    assert randomizer.factor_names[0] == ("object_mass", 1)


def test_inertia_follows_the_mass_of_an_object():
    sim = BatchSim(scene(), SimCfg(nsim=2, threads=1))
    sim.params.set("object_mass", 0.2, of="cube", ids=np.array([1]))
    body = sim.model.body("cube").id
    inertia = sim.batch.expand("body_inertia")[:, body]
    np.testing.assert_allclose(inertia[1], 4.0 * inertia[0])
    np.testing.assert_allclose(inertia[0], 0.05 * 2 * 0.04**2 / 12)  # of a cube: m a^2 / 6


def test_a_cube_slides_to_rest_as_its_friction_says():
    """From v0 it comes v0^2 / (2 mu g) far, on a floor that is rougher."""
    sim = BatchSim(scene(Object(name="cube", shape="box", size=(0.05, 0.05, 0.02))), SimCfg(nsim=2, threads=1))
    sim.params.set("object_friction", [[0.2], [0.5]])
    sim.reset(objects={"cube": [0.0, 1.0, 0.02, 1.0, 0.0, 0.0, 0.0]})
    hold(sim, 10)
    start = sim.object_pose("cube")[:, 1].copy()
    sim.object_vel("cube")[:, 1] = 1.0
    hold(sim, 100)
    way = sim.object_pose("cube")[:, 1] - start
    np.testing.assert_allclose(way, 1.0 / (2 * np.array([0.2, 0.5]) * 9.81), rtol=0.05)


def test_contact_friction_of_the_ground_leaves_objects_alone():
    sim = BatchSim(scene(), SimCfg(nsim=1, threads=1))
    sim.params.set("contact_friction", 0.33)
    assert sim.params.get("object_friction")[0, 0] == 0.8
    assert sim.params.get("contact_friction")[0] == 0.33
    assert "cube" not in sim.params.body_names


def test_a_range_for_an_object_that_is_not_there_is_refused():
    with pytest.raises(TrueupError, match="no 'cube'.*did you mean|no 'cube'"):
        Randomizer(BatchSim(scene(Object(name="cub", shape="sphere", size=(0.02,)))), RANGES)
    with pytest.raises(TrueupError, match="'object_mass' needs an object"):
        Randomizer(BatchSim(load_robot("so101")), RANGES)
