"""Several robots in one scene: joints in order, names, mounts, contacts between them; one robot stays as it was."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from two_arms import TURNED, two_arms, two_arms_task

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot, zoo_names
from trueup.robot.model import ModelCfg, build_spec, compile_spec, default_qpos
from trueup.tasks.load import EnvCfg, make_env
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.scene.scene import Mounted, Scene


def saved(model: mujoco.MjModel) -> bytes:
    out = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, out)
    return out.tobytes()


@pytest.mark.parametrize("name", zoo_names())
@pytest.mark.parametrize("cfg", [ModelCfg(), ModelCfg(base="mount"), ModelCfg(collisions="full", visual=True)])
def test_a_scene_of_one_robot_is_its_model_bit_for_bit(name, cfg):
    robot = load_robot(name)
    assert saved(Scene.of(robot).compile(cfg)) == saved(compile_spec(build_spec(robot, cfg), robot))
    assert Scene.of(robot).robot is robot


def test_joints_of_all_robots_stand_in_scene_order():
    z1, so101 = load_robot("z1"), load_robot("so101")
    scene = Scene(robots=(Mounted(robot=z1), Mounted(robot=so101, prefix="small_", pos=(0.0, 0.8, 0.0))))
    sim = BatchSim(scene, SimCfg(nsim=2, threads=1))
    names = [*z1.spec.joint_names, *(f"small_{name}" for name in so101.spec.joint_names)]
    assert sim.robot.spec.joint_names == tuple(names)
    assert [place.joints for place in sim.robots] == [slice(0, 7), slice(7, 13)]
    np.testing.assert_array_equal(sim.joint_pos[0, sim.robots[1].joints], so101.spec.default_pose)
    np.testing.assert_array_equal(sim.params.get("kp")[0], [*z1.spec.kp, *so101.spec.kp])
    assert sim.physics_dt == pytest.approx(1.0 / max(z1.spec.physics_hz, so101.spec.physics_hz))
    target = sim.robot.spec.default_pose
    target[8] -= 0.3  # the second robot's second joint
    before = sim.joint_pos.copy()
    for _ in range(50):
        sim.step(target)
    moved = np.abs(sim.joint_pos - before)[0]
    assert moved[8] > 0.2
    assert moved[:7].max() < 0.05


def test_robots_far_apart_move_as_each_does_alone():
    so101 = load_robot("so101")
    apart = (Mounted(robot=so101, prefix="a_"), Mounted(robot=so101, prefix="b_", pos=(0.0, 5.0, 0.0)))
    both, alone = BatchSim(Scene(robots=apart), SimCfg(threads=1)), BatchSim(so101, SimCfg(threads=1))
    target = so101.spec.default_pose + np.array([0.3, 0.2, -0.2, 0.1, 0.3, 0.2])
    for _ in range(40):
        both.step([*target, *so101.spec.default_pose])
        alone.step(target)
    np.testing.assert_allclose(both.joint_pos[0, :6], alone.joint_pos[0], atol=1e-9)


def test_a_mount_turns_and_moves_the_robot():
    sim = BatchSim(two_arms(), SimCfg(threads=1))
    data = mujoco.MjData(sim.model)
    data.qpos[:] = sim.default_qpos
    mujoco.mj_kinematics(sim.model, data)
    left, right = data.site("left_gripperframe").xpos, data.site("right_gripperframe").xpos
    np.testing.assert_allclose(right, left * [-1, -1, 1], atol=1e-12)
    assert left[0] < 0.0 < right[0]


def test_a_free_base_starts_at_its_mount():
    go2 = load_robot("go2")
    dogs = tuple(Mounted(robot=go2, prefix=f"dog{k}_", pos=(0.0, 2.0 * k, 0.0)) for k in range(2))
    sim = BatchSim(Scene(robots=dogs), SimCfg(threads=1))
    (first, _), (second, dof) = (place.free_at for place in sim.robots)
    np.testing.assert_allclose(sim.qpos[0, first : first + 3], [0.0, 0.0, go2.spec.base.stand_height])
    np.testing.assert_allclose(sim.qpos[0, second : second + 3], [0.0, 2.0, go2.spec.base.stand_height])
    alone = BatchSim(go2, SimCfg(threads=1))
    for each in (sim, alone):
        for _ in range(25):
            each.step(each.robot.spec.default_pose)
    np.testing.assert_allclose(sim.qpos[0, second + 2 : second + 7], alone.qpos[0, 2:7], atol=1e-6)
    np.testing.assert_allclose(sim.qvel[0, dof : dof + 6], alone.qvel[0, :6], atol=1e-4)


def test_the_only_robot_can_be_mounted_elsewhere_under_its_own_names():
    so101 = load_robot("so101")
    moved = Mounted(robot=so101, pos=(0.0, 1.0, 0.5), quat=TURNED)
    sims = [BatchSim(Scene(robots=(one,)), SimCfg(threads=1)) for one in (moved, Mounted(robot=so101))]
    tools = []
    for sim in sims:
        data = mujoco.MjData(sim.model)
        data.qpos[:] = sim.default_qpos
        mujoco.mj_kinematics(sim.model, data)
        tools.append(data.site("gripperframe").xpos.copy())
    np.testing.assert_allclose(tools[0], tools[1] * [-1, -1, 1] + [0.0, 1.0, 0.5], atol=1e-12)


def test_robots_touch_each_other_and_not_themselves():
    so101 = load_robot("so101")
    near = (Mounted(robot=so101, prefix="a_"), Mounted(robot=so101, prefix="b_", pos=(0.01, 0.0, 0.0)))
    model = Scene(robots=near).compile()
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, Scene(robots=near).robot)
    mujoco.mj_forward(model, data)
    pairs = [[model.geom(int(geom)).name[:2] for geom in pair] for pair in data.contact.geom]
    assert pairs
    assert all(sorted(pair) == ["a_", "b_"] for pair in pairs)


def test_rows_do_not_depend_on_the_size_of_the_batch_nor_on_threads():
    def run(nsim: int, threads: int, first_row: int) -> np.ndarray:
        sim = BatchSim(two_arms(), SimCfg(nsim=nsim, threads=threads, first_row=first_row))
        rows = np.random.default_rng(5).uniform(-0.4, 0.4, (4, 12))[first_row : first_row + nsim]
        for _ in range(40):
            sim.step(sim.robot.spec.default_pose + rows)
        return sim.batch.state.copy()

    np.testing.assert_array_equal(run(4, 2, 0)[2:3], run(1, 1, 2))


def test_a_task_with_two_arms_steps_and_resumes():
    env = make_env(two_arms_task(), EnvCfg(nenv=2, threads=1))
    assert env.naction == 12
    action = np.full((2, 12), 0.5, np.float32)
    env.step(action)
    state = env.state()
    first = env.step(action).obs.actor.copy()
    env.restore(state)
    np.testing.assert_array_equal(env.step(action).obs.actor, first)


def test_a_scene_without_a_robot_and_prefixes_that_clash_are_refused():
    with pytest.raises(TrueupError, match="no robot: put one in"):
        BatchSim(Scene(), SimCfg())
    one = Mounted(robot=load_robot("so101"))
    with pytest.raises(TrueupError, match="robot prefix '' twice"):
        Scene(robots=(one, replace(one, pos=(1.0, 0.0, 0.0))))
    with pytest.raises(TrueupError, match="only the first robot"):
        Scene(robots=(replace(one, prefix="a_"), one))


def test_robots_with_different_solver_options_take_those_of_the_first_without_a_warning(recwarn):
    go2, so101 = load_robot("go2"), load_robot("so101")
    scene = Scene(robots=(Mounted(robot=so101, prefix="arm_"), Mounted(robot=go2, prefix="dog_", pos=(2.0, 0.0, 0.0))))
    model = scene.compile()
    assert model.opt.iterations == Scene.of(so101).compile().opt.iterations
    assert not recwarn.list
