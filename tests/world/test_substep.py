"""Models between physics steps: extra torque inside the limits, and friction that depends on the load."""

import numpy as np
import pytest

from trueup.models.friction import FrictionParams
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.substep import GearFriction, SubstepModel, SubstepState
from trueup.world.batch import BatchSim, SimCfg


class AddTorque(SubstepModel):
    """Adds a constant torque and remembers what it was shown."""

    def __init__(self, torque: float) -> None:
        self.torque, self.seen = torque, []

    def reset(self, sim, ids) -> None:
        self.seen.clear()

    def step(self, sim, state: SubstepState):
        self.seen.append(state.target_pos.copy())
        return np.full_like(state.joint_pos, self.torque)


def pendulum(model=None, **cfg) -> BatchSim:
    return BatchSim(load_robot("pendulum"), SimCfg(**cfg), model)


def test_a_hook_that_adds_nothing_changes_nothing():
    plain, hooked = pendulum(nsim=3), pendulum(AddTorque(0.0), nsim=3)
    for sim in (plain, hooked):
        sim.params.set("delay", np.array([[0.0], [0.0035], [0.012]]))
        sim.reset()
        for t in range(30):
            sim.step(np.full((3, 1), 0.5 * np.sin(0.2 * t)))
    np.testing.assert_allclose(hooked.qpos, plain.qpos, atol=1e-12)


def test_extra_torque_is_added_before_the_limit():
    robot = load_robot("pendulum")
    sim = pendulum(AddTorque(1.5), nsim=1)
    start = sim.joint_pos.copy()
    sim.step(start)
    assert sim.joint_torque[0, 0] < 1.5  # the servo already pulls back
    strong = pendulum(AddTorque(100.0), nsim=1)
    strong.step(start)
    assert strong.joint_torque[0, 0] == pytest.approx(robot.spec.torque_limit[0])


def test_the_hook_runs_every_physics_step_and_sees_the_delayed_target():
    hook = AddTorque(0.0)
    sim = pendulum(hook, nsim=1)
    sim.params.set("delay", 0.004)
    sim.reset()
    sim.step(np.array([[1.0]]))
    seen = np.array(hook.seen)[:, 0, 0]
    assert len(seen) == sim.substeps
    np.testing.assert_allclose(seen, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1], atol=1e-12)


def coast(sim: BatchSim, speed: float, seconds: float) -> np.ndarray:
    """Let the joint coast without servo or gravity from a speed; return its velocity over time."""
    sim.params.set("kp", 0.0)
    sim.params.set("kd", 0.0)
    sim.params.set("gravity", [0.0, 0.0, 0.0])
    sim.reset(qvel=np.full((sim.nsim, 1), speed))
    out = []
    for _ in range(round(seconds / sim.control_dt)):
        sim.step(np.zeros((sim.nsim, 1)))
        out.append(sim.joint_vel[0, 0])
    return np.array(out)


def test_m1_equals_the_engines_own_friction():
    native = pendulum(nsim=1)
    native.params.set("damping", 0.02)
    native.params.set("friction", 0.1)
    hooked = pendulum(GearFriction("M1", FrictionParams(kv=0.02, kc=0.1)), nsim=1)
    np.testing.assert_allclose(coast(hooked, 3.0, 0.5), coast(native, 3.0, 0.5), atol=1e-9)


def test_coasting_under_m2_follows_the_equation_of_motion():
    params = FrictionParams(kv=0.01, kc=0.06, kcs=0.05, dqs=0.5, alpha=1.0)
    sim = pendulum(GearFriction("M2", params), nsim=1)
    measured = coast(sim, 2.0, 0.3)
    inertia = 0.01 + 2e-6 + 0.000125 + 0.5 * 0.15**2
    speed, dt, reference = 2.0, 1e-5, []
    for step in range(1, 30_001):
        dry = params.kc + params.kcs * np.exp(-(abs(speed / params.dqs) ** params.alpha))
        speed -= dt / inertia * (params.kv * speed + np.sign(speed) * dry)
        if step % 1000 == 0:
            reference.append(speed)
    np.testing.assert_allclose(measured, reference, atol=0.01)


@pytest.mark.parametrize(("load_mass", "sticks"), [(0.1, False), (1.0, True)])
def test_load_dependent_friction_holds_a_heavy_load_longer(load_mass, sticks):
    """M3: budget kc + kl |tau_m - tau_e|; with kl > 1 gravity alone can never start the joint."""
    params = FrictionParams(kv=0.01, kc=0.02, kl=1.2 if sticks else 0.2)
    robot = load_robot(f"pendulum:load_mass={load_mass},load_length=0.3")
    sim = BatchSim(robot, SimCfg(nsim=1), GearFriction("M3", params))
    sim.params.set("kp", 0.0)
    sim.params.set("kd", 0.0)
    sim.reset(qpos=np.array([[1.0]]))
    for _ in range(50):
        sim.step(np.array([[1.0]]))
    moved = abs(sim.joint_pos[0, 0] - 1.0)
    assert moved < 0.02 if sticks else moved > 0.3


def test_load_friction_sees_the_weight_that_a_leg_carries():
    robot = load_robot("go2")
    params = FrictionParams(kv=0.5, kc=0.1, kl=0.1)
    model = GearFriction("M3", params)
    stand = BatchSim(robot, SimCfg(nsim=1), model)
    for _ in range(100):
        stand.step(robot.spec.default_pose)
    carried = stand.batch.expand("dof_frictionloss")[0, stand.index.dof].copy()
    air = BatchSim(robot, SimCfg(nsim=1, model=ModelCfg(base="fixed")), model)
    for _ in range(100):
        air.step(robot.spec.default_pose)
    hanging = air.batch.expand("dof_frictionloss")[0, air.index.dof]
    calves = [2, 5, 8, 11]
    assert (carried[calves] > 3 * hanging[calves]).all()
