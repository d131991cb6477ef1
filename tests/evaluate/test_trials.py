"""Trials on real physics: a row is the same alone and among others, and what is asked for happens to the robot."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from made_params import made_params, one
from made_suites import made_bundle, spec_of

from trueup.core.errors import TrueupError
from trueup.evaluate.scenarios.scenario import Carpet, Heat, ParameterChange, Scenario, Shove, StartNoise, TerrainSize
from trueup.evaluate.trials.run import run_trials
from trueup.evaluate.trials.world import TrialCfg, make_world
from trueup.robot.load import load_robot
from trueup.tasks.load import load_task

TASK, SPEC = load_task("go2-velocity"), spec_of()
NOISE = StartNoise(joint_pos=0.05, tilt=0.03, vel=0.05, spin=0.05)
VARY = {
    "contact_friction": ParameterChange(set=(0.6, 1.0)),
    "motor_strength": ParameterChange(scale=(0.9, 1.1), each=True),
    "com_offset": ParameterChange(add=(-0.01, 0.01), of="trunk", each=True),
}


def world_of(scenario: Scenario, trials: int = 3, **options: object):
    return make_world(TASK, scenario, SPEC, TrialCfg(trials=trials, threads=1, **options))


def scenario(**fields: object) -> Scenario:
    return Scenario(**({"name": "made", "seconds": 1.0, "command": {"forward": 0.3}, "start": NOISE} | fields))


@pytest.mark.parametrize(
    "made",
    [
        scenario(push=Shove(newton=30.0, every_s=(0.2, 0.4), seconds=0.1), heading=True),
        scenario(terrain=TerrainSize(kind="noise", size=0.02), heat=Heat(), command=None),
    ],
    ids=["pushes", "slabs and heat"],
)
def test_a_trial_is_the_same_alone_and_among_others(made):
    bundle = made_bundle(SPEC, size=0.5)
    together = run_trials(bundle, TASK, made, TrialCfg(trials=4, threads=2, vary=VARY, seed=5))
    for row in range(4):
        alone = run_trials(bundle, TASK, made, TrialCfg(trials=1, first_row=row, threads=1, vary=VARY, seed=5))
        assert alone.failed[0] == together.failed[row]
        for name, values in together.table.items():
            np.testing.assert_array_equal(alone.table[name][0], values[row], err_msg=name)
    assert len(set(together.table["power"])) == 4  # and trials differ


def test_another_seed_gives_other_trials():
    bundle, made = made_bundle(SPEC), scenario()
    first, again, other = (
        run_trials(bundle, TASK, made, TrialCfg(trials=2, threads=1, seed=seed, vary=VARY)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.table["error"], again.table["error"])
    assert (first.table["error"] != other.table["error"]).all()


def test_robots_start_with_their_lowest_foot_on_the_ground_even_in_a_bad_pose():
    world = world_of(scenario(start=StartNoise(joint_pos=0.3, tilt=0.2)), trials=20)
    np.testing.assert_allclose(world.frame.foot_height.min(axis=1), 0.0, atol=1e-4)


def test_stairs_begin_ahead_of_the_robot_and_are_as_high_as_asked():
    world = world_of(scenario(terrain=TerrainSize(kind="stairs_up", size=0.15)))
    x = np.array([0.0, 0.9, 1.1, 1.4, 1.7], np.float32)
    heights = world._ground.terrain.height_at(x, np.zeros(5, np.float32))
    np.testing.assert_allclose(heights, [0.0, 0.0, 0.15, 0.30, 0.45], atol=1e-6)
    assert np.abs(world.sim.qpos[:, :2]).max() < 0.1


def test_a_payload_adds_its_mass_and_raises_the_centre_of_mass():
    plain, loaded = world_of(scenario()), world_of(scenario(params={"payload": ParameterChange(set=3.0)}))
    np.testing.assert_allclose(loaded.mass - plain.mass, 3.0, rtol=1e-9)
    base = loaded.sim.params.columns("com_offset", "base")
    offset = loaded.sim.params.get("com_offset")[:, base][:, 0]
    mass, height = 3.0 / (3.0 + loaded.sim.model.body("base").mass[0]), 0.1 - loaded.sim.model.body("base").ipos[2]
    np.testing.assert_allclose(offset[:, 2], mass * height, rtol=1e-6)


def test_parameters_are_set_scaled_and_added_to_what_each_row_has():
    params = {
        "kp": ParameterChange(scale=0.5, of="FL_hip_joint"),
        "delay": ParameterChange(set=0.02),
        "com_offset": ParameterChange(add=0.03, of="trunk", axis="y"),
        "sensor_noise": ParameterChange(set=4.0),
        "restitution": ParameterChange(set=0.5),
    }
    sim, plain = world_of(scenario(params=params)).sim, world_of(scenario()).sim
    np.testing.assert_allclose(sim.params.get("kp")[:, 0], 0.5 * plain.params.get("kp")[:, 0])
    np.testing.assert_allclose(sim.params.get("kp")[:, 1:], plain.params.get("kp")[:, 1:])
    np.testing.assert_allclose(sim.params.get("delay"), 0.02)
    np.testing.assert_allclose(sim.params.get("com_offset")[:, 0, 1], 0.03)
    np.testing.assert_allclose(sim.sensors.noise_scale, 4.0)
    assert (sim.params.get("contact_dampratio") < 0.3).all()


def test_a_scenarios_change_acts_on_what_was_varied():
    strength = {"motor_strength": ParameterChange(scale=0.8)}
    varied = world_of(scenario(), vary=VARY, seed=3).sim.params.get("torque_limit")
    weak = world_of(scenario(params=strength), vary=VARY, seed=3).sim.params.get("torque_limit")
    np.testing.assert_allclose(weak, 0.8 * varied)
    assert len(np.unique(varied)) == varied.size


def test_what_was_fitted_is_drawn_and_a_scenario_still_has_the_last_word():
    joints = load_robot("go2").spec.joint_names
    armature = one("armature", joints, "identified", 0.02, width=0.002)
    fit = made_params(joints, [armature], [0.0], np.eye(1))
    drawn = world_of(scenario(), trials=4, fit=fit, vary={"armature": ParameterChange(scale=5.0)}).sim.params
    assert len(np.unique(drawn.get("armature")[:, 0])) == 4
    assert np.abs(drawn.get("armature") - 0.02).max() < 0.01  # the suite's factor of 5 leaves it alone
    fixed = world_of(scenario(params={"armature": ParameterChange(set=0.05)}), trials=4, fit=fit).sim.params
    np.testing.assert_allclose(fixed.get("armature"), 0.05)


def test_pushes_come_from_the_side_with_the_force_asked_for():
    world = world_of(scenario(push=Shove(newton=40.0, every_s=(0.1, 0.2), seconds=0.1)), trials=8)
    target, seen = np.tile(world.robot.default_pose, (8, 1)), []
    for _ in range(30):
        world.step(target)
        seen.append(world.sim.base_force.copy())
    pushed = np.array(seen)
    size = np.linalg.norm(pushed, axis=2)
    np.testing.assert_allclose(size[size > 0], 40.0, rtol=1e-9)
    assert (np.abs(pushed[..., 1]) >= np.abs(pushed[..., 0])).all()  # robots face x
    assert {-1.0, 1.0} <= set(np.sign(pushed[..., 1]).ravel())
    assert (size > 0).any(axis=0).all()


def test_hot_motors_lose_torque_and_cool_down_at_rest():
    world = world_of(scenario(heat=Heat(start=2.0, derate=0.5, floor=0.3, time_s=1.0)))
    full = world.robot.torque_limit
    np.testing.assert_allclose(world.torque_limit, np.tile(0.5 * full, (3, 1)))
    for _ in range(100):
        world.step(np.tile(world.robot.default_pose, (3, 1)))
    assert (world.torque_limit > 0.55 * full).all()
    assert (world.torque_limit <= full).all()


def test_friction_of_a_carpet_depends_on_the_direction():
    ways = {}
    for axis in (0, 1):
        world = world_of(scenario(carpet=Carpet(along=0.05, across=1.0), start=StartNoise()), trials=1)
        qvel = np.zeros((1, world.sim.model.nv))
        qvel[:, world.sim.base_dof + axis] = 1.0
        world.sim.reset(qpos=world.sim.qpos.copy(), qvel=qvel)
        start = world.sim.qpos[0, :2].copy()
        for _ in range(40):
            world.step(world.robot.default_pose[None])
        ways[axis] = np.linalg.norm(world.sim.qpos[0, :2] - start)
    assert ways[0] > 3.0 * ways[1]


def test_a_command_is_kept_inside_the_tasks_range_and_an_unknown_one_is_named():
    np.testing.assert_allclose(world_of(scenario(command={"forward": 9.0})).command[:, 0], 1.0)
    with pytest.raises(TrueupError, match="did you mean 'forward'"):
        world_of(scenario(command={"foward": 1.0}))


def test_arms_carry_their_load_at_the_tool():
    task, spec = load_task("z1-reach"), spec_of("z1-reach")
    made = Scenario(name="load", seconds=1.0, params={"payload": ParameterChange(set=0.5)})
    plain, loaded = (
        make_world(task, one, spec, TrialCfg(trials=1, threads=1))
        for one in (msgspec.structs.replace(made, params={}), made)
    )
    assert loaded.mass - plain.mass == pytest.approx(0.5)
    grown = loaded.sim.params.get("mass_scale")[0] > plain.sim.params.get("mass_scale")[0]
    assert grown.sum() == 1
    assert loaded.sim.params.body_names[int(np.argmax(grown))] not in ("link00", "link01", "link02")


def test_an_unknown_engine_is_named():
    with pytest.raises(TrueupError, match="did you mean 'mujoco'"):
        world_of(scenario(), engine="mujuco")
