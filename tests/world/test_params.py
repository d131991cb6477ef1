"""Every parameter by name: it is written, it is read back, and it changes the physics as it should."""

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.engine import ActuatorCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.parameters.inertia import compose, decompose, matrix
from trueup.world.parameters.params import PARAMETERS
from trueup.world.parameters.table import GEAR_FRICTION
from trueup.world.randomization.randomize import Draw, Randomizer
from trueup.world.scene.scene import Object, Scene


def make(kind="pd", nsim=4, base=None) -> BatchSim:
    return BatchSim(load_robot("go2"), SimCfg(nsim=nsim, actuator=ActuatorCfg(kind=kind), model=ModelCfg(base=base)))


_FROM_ZERO = ("delay", "encoder_bias", "stiffness", "com_offset", "inertia_shape", "tilt", "torque_offset")


def make_for(name: str, nsim: int = 4) -> BatchSim:
    """A simulation that has what the parameter acts on."""
    if name in GEAR_FRICTION:
        return BatchSim(load_robot("go2"), SimCfg(nsim=nsim, friction="M6"))
    if name.startswith("object"):
        load = Object(name="load", shape="box", size=(0.1, 0.05, 0.02), mass=1.0, friction=0.2, pos=(0, 0, 0.45))
        return BatchSim(Scene(objects=(load,)).with_robot(load_robot("go2")), SimCfg(nsim=nsim))
    return make("dcmotor", nsim=nsim, base="mount" if name.startswith("mount") else None)


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_what_is_set_is_read_back_and_only_there(name):
    sim = make_for(name)
    before = sim.params.get(name)
    new = before * 1.1 + 0.01 * (name in _FROM_ZERO or name in GEAR_FRICTION)
    sim.params.set(name, new[[2]], ids=np.array([2]))
    after = sim.params.get(name)
    np.testing.assert_allclose(after[2], new[2], rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(after[[0, 1, 3]], before[[0, 1, 3]])
    sim.step(sim.robot.spec.default_pose)
    assert np.isfinite(sim.qpos).all()


_ALONE = {"friction_dqs", "friction_alpha", "friction_kl", "friction_kls"}  # M6 has none of these, or not alone
_OUT_OF_REACH = {"stop_low", "stop_stiffness", "stop_damping"}  # this motion meets no lower stop


@pytest.mark.parametrize("name", sorted(set(PARAMETERS) - {"delay", "encoder_bias"} - _ALONE - _OUT_OF_REACH))
def test_every_engine_parameter_changes_the_motion_of_its_row(name):
    sim = make_for(name, nsim=2)
    value = sim.params.get(name)[1] * (0.2 if name in ("torque_limit", "stall_torque", "no_load_speed") else 1.5)
    if name in _FROM_ZERO or name in GEAR_FRICTION:
        value = value + 0.05
    if name == "stop_high":
        value = value - 1.5
    sim.params.set(name, value[None], ids=np.array([1]))
    qpos = np.tile(sim.default_qpos, (2, 1))
    qpos[:, 2] += 0.05
    sim.reset(qpos=qpos)
    for t in range(25):
        sim.step(sim.robot.spec.default_pose + 0.8 * np.sin(0.8 * t))
    assert np.abs(sim.qpos[0] - sim.qpos[1]).max() > 1e-6


def test_one_joint_or_body_can_be_named():
    sim = make()
    before = sim.params.get("armature")
    sim.params.set("armature", 0.5, of="RL_calf_joint")
    sim.params.set("mass_scale", [[2.0]], of="base")
    armature, scale = sim.params.get("armature"), sim.params.get("mass_scale")
    column = sim.robot.spec.joint_names.index("RL_calf_joint")
    assert (armature[:, column] == 0.5).all()
    np.testing.assert_array_equal(np.delete(armature, column, axis=1), np.delete(before, column, axis=1))
    assert (scale[:, sim.params.body_names.index("base")] == 2.0).all()


def test_derived_constants_follow_as_if_recompiled():
    sim = make(nsim=2)
    sim.params.set("mass_scale", 1.7, of="base", ids=np.array([1]))
    sim.params.set("armature", 0.03, ids=np.array([1]))
    sim.reset()
    model = sim.batch.get_model(1)
    reference = sim.batch.get_model(0)
    base = reference.body("base").id
    reference.body_mass[base] *= 1.7
    reference.body_inertia[base] *= 1.7
    reference.dof_armature[6:] = 0.03
    mujoco.mj_setConst(reference, mujoco.MjData(reference))
    for field in ("body_subtreemass", "dof_invweight0", "body_invweight0", "dof_M0"):
        np.testing.assert_allclose(getattr(model, field), getattr(reference, field), rtol=1e-12, err_msg=field)


def test_every_field_that_constants_derive_from_is_known():
    written = {"body_mass", "body_inertia", "body_ipos", "body_iquat", "dof_armature"}
    inputs = frozenset(mujoco.MjModel._setconst_inputs)
    assert written <= inputs
    left_alone = {"jnt_range", "jnt_solref", "geom_solref"} | {
        "dof_damping",
        "dof_frictionloss",
        "actuator_gainprm",
        "actuator_biasprm",
        "geom_friction",
    }
    assert not left_alone & inputs


def test_mass_scale_twice_is_not_squared():
    sim = make()
    sim.params.set("mass_scale", 2.0)
    sim.params.set("mass_scale", 2.0)
    model = sim.batch.get_model(0)
    np.testing.assert_allclose(model.body_mass, sim.model.body_mass * 2)
    np.testing.assert_allclose(model.body_inertia, sim.model.body_inertia * 2)


def test_inertia_is_the_tensor_asked_for():
    sim = make()
    six = np.array([0.03, 0.09, 0.1, 0.004, -0.006, 0.002])
    sim.params.set("inertia", six[None, None], of="base")
    model = sim.batch.get_model(0)
    body = model.body("base").id
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.body_iquat[body])
    axes = rotation.reshape(3, 3)
    np.testing.assert_allclose(axes @ np.diag(model.body_inertia[body]) @ axes.T, matrix(six), atol=1e-12)


def test_decompose_and_compose_are_inverse_for_random_tensors():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 10, 3))
    inertia = np.einsum("nki,nki->n", points, points)[:, None, None] * np.eye(3) - np.einsum(
        "nki,nkj->nij", points, points
    )
    six = np.stack([inertia[:, i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], 1)
    np.testing.assert_allclose(compose(*decompose(six)), six, rtol=1e-9, atol=1e-9)


def test_impossible_values_are_refused_by_name():
    sim = make()
    with pytest.raises(TrueupError, match="not physical"):
        sim.params.set("inertia", [[[1.0, 1.0, 3.0, 0, 0, 0]]], of="base")
    with pytest.raises(TrueupError, match="at least 0"):
        sim.params.set("damping", -1.0)
    with pytest.raises(TrueupError, match="finite"):
        sim.params.set("kp", np.nan)
    with pytest.raises(TrueupError, match="did you mean 'armature'"):
        sim.params.get("armatur")
    with pytest.raises(TrueupError, match="no joint 'FL_hip'"):
        sim.params.set("kp", 1.0, of="FL_hip")
    with pytest.raises(TrueupError, match=r"broadcasts to \(4, 12\)"):
        sim.params.set("kp", np.ones(11))
    with pytest.raises(TrueupError, match="dcmotor"):
        sim.params.set("no_load_speed", 10.0)
    with pytest.raises(TrueupError, match="max_delay_s"):
        sim.params.set("delay", 1.0)


def test_randomised_values_fill_their_range_and_differ_per_joint():
    sim = make(nsim=256)
    Randomizer(
        sim,
        {
            "kp": Draw(operation="scale", low=0.8, high=1.2),
            "delay": Draw(operation="set", low=0.0, high=0.02, each=False),
            "com_offset": Draw(operation="set", low=-0.03, high=0.03, of=("base",)),
        },
    ).apply()
    scale = sim.params.get("kp") / sim.robot.spec.kp
    assert 0.8 <= scale.min() < 0.81
    assert 1.19 < scale.max() <= 1.2
    assert np.abs(np.corrcoef(scale.T) - np.eye(12)).max() < 0.3
    delay = sim.params.get("delay")
    assert (delay == delay[:, :1]).all()
    assert delay.std() == pytest.approx(0.02 / np.sqrt(12), rel=0.15)
    offset = sim.params.get("com_offset")
    base = sim.params.body_names.index("base")
    assert np.abs(offset[:, base]).max() > 0.02
    assert np.delete(offset, base, axis=1).any() == False  # noqa: E712


def test_fresh_draws_for_some_rows_leave_the_rest():
    sim = make(nsim=8)
    randomizer = Randomizer(sim, {"kp": Draw(operation="scale", low=0.5, high=1.5)})
    randomizer.apply()
    before = sim.params.get("kp")
    randomizer.apply(np.array([3]))
    changed = (sim.params.get("kp") != before).any(axis=1)
    assert list(np.flatnonzero(changed)) == [3]
