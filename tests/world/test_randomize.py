"""Randomisation: distributions, moments, composed names, posterior."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import ZOO, load_robot
from trueup.robot.model import trunk_body
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.parameters.payload import with_payload
from trueup.world.randomization.randomize import Draw, Randomizer, locomotion_ranges
from trueup.world.randomization.targets import damp_ratio


def make(nsim=64, robot="go2", seed=0):
    return BatchSim(load_robot(robot), SimCfg(nsim=nsim, threads=1, seed=seed))


@pytest.mark.parametrize("distribution", ["uniform", "log_uniform", "normal"])
def test_draws_follow_their_distribution(distribution):
    sim = make(2000, "pendulum")
    draw = Draw(operation="set", low=0.5, high=2.0, distribution=distribution)
    Randomizer(sim, {"damping": draw}).apply()
    values = sim.params.get("damping")[:, 0]
    assert values.min() >= 0.5
    assert values.max() <= 2.0
    median = {"uniform": 1.25, "log_uniform": 1.0, "normal": 1.25}[distribution]
    assert abs(np.median(values) - median) < 0.06
    if distribution == "normal":
        assert abs(values.std() - 0.375 * 0.88) < 0.03  # a normal cut at two deviations has 0.88 of its deviation


def test_motor_strength_scales_gains_and_limit_together():
    sim = make(8)
    Randomizer(sim, {"motor_strength": Draw(operation="scale", low=0.5, high=1.5)}).apply()
    share = sim.params.get("kp") / sim.robot.spec.kp
    assert np.ptp(share) > 0.5
    np.testing.assert_allclose(sim.params.get("kd") / sim.robot.spec.kd, share)
    np.testing.assert_allclose(sim.params.get("torque_limit") / sim.robot.spec.torque_limit, share)


def test_payload_moves_mass_and_centre_as_by_hand():
    mass, com, inertia = with_payload(
        np.array([2.0]), np.zeros((1, 3)), np.ones((1, 6)) * [1, 1, 1, 0, 0, 0], np.array([2.0]), np.array([0, 0, 0.2])
    )
    assert mass[0] == 4.0
    np.testing.assert_allclose(com[0], [0, 0, 0.1])
    np.testing.assert_allclose(inertia[0], [1.04, 1.04, 1.0, 0, 0, 0])


def test_payload_is_carried_by_the_base():
    sim = make(16)
    Randomizer(sim, {"payload": Draw(operation="set", low=1.0, high=1.0)}).apply()
    base = sim.params.body_names.index("base")
    nominal = sim.model.body("base").mass[0]
    np.testing.assert_allclose(sim.params.get("mass_scale")[:, base] * nominal, nominal + 1.0)
    assert (sim.params.get("com_offset")[:, base, 2] > 0.0).all()
    others = [k for k in range(len(sim.params.body_names)) if k != base]
    np.testing.assert_array_equal(sim.params.get("mass_scale")[:, others], 1.0)


BALL = """<mujoco><option timestep="0.005" integrator="implicitfast"/><default><geom solref="0.02 {ratio}"/></default>
<worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 {height}"><joint name="x" type="slide" axis="1 0 0"/>
<joint name="z" type="slide" axis="0 0 1"/><geom type="sphere" size="0.022" mass="4"/></body></worldbody></mujoco>"""


def ball(restitution, height):
    text = BALL.format(ratio=damp_ratio(np.array([restitution]))[0], height=height)
    model = mujoco.MjModel.from_xml_string(text)
    return model, mujoco.MjData(model)


def bounce(restitution, height):
    """Speed after the first contact over the speed before it."""
    model, data = ball(restitution, height)
    fastest_down = fastest_up = 0.0
    for _ in range(160):
        mujoco.mj_step(model, data)
        fastest_down = min(fastest_down, data.qvel[1])
        fastest_up = max(fastest_up, data.qvel[1])
    return -fastest_up / fastest_down


@pytest.mark.parametrize("restitution", [0.2, 0.3, 0.5])
def test_a_dropped_ball_bounces_as_asked(restitution):
    """On average over where in a physics step it lands."""
    found = np.mean([bounce(restitution, 0.073 + 0.0008 * k) for k in range(20)])
    assert found == pytest.approx(restitution, abs=0.12)


def test_bounciness_does_not_let_feet_creep():
    def creep(restitution):
        model, data = ball(restitution, 0.022)
        for k in range(800):
            data.qfrc_applied[0] = 20.0 * (k >= 400)  # half of what friction can hold, once it lies still
            mujoco.mj_step(model, data)
        return data.qvel[0]

    assert creep(0.5) < 1.3 * creep(0.0)


def test_each_moment_draws_when_it_should():
    sim = make(4, "pendulum")
    ranges = {
        "kp": Draw(operation="scale", low=0.5, high=1.5, moment="startup"),
        "damping": Draw(operation="scale", low=0.5, high=1.5, moment="reset"),
        "friction": Draw(operation="scale", low=0.5, high=1.5, moment="interval", interval_s=(0.05, 0.05)),
        "torque_limit": Draw(operation="scale", low=0.5, high=1.5, moment="step"),
    }
    randomizer = Randomizer(sim, ranges)
    randomizer.apply()

    def look():
        return {name: sim.params.get(name).copy() for name in ranges}

    first = look()
    randomizer.reset(np.array([1]))
    second = look()
    np.testing.assert_array_equal(first["kp"], second["kp"])
    changed = (first["damping"] != second["damping"])[:, 0]
    np.testing.assert_array_equal(changed, [False, True, False, False])
    randomizer.advance()
    third = look()
    assert (third["torque_limit"] != second["torque_limit"]).all()
    np.testing.assert_array_equal(third["friction"], second["friction"])
    for _ in range(5):
        randomizer.advance()
    assert (look()["friction"] != second["friction"]).all()
    np.testing.assert_array_equal(look()["damping"], second["damping"])


def test_rows_written_later_are_as_if_written_at_once():
    """The quick writers agree with `params.set`, and rounding does not add up over resets."""
    sim, other = make(6, seed=2), make(6, seed=2)
    randomizer = Randomizer(sim, locomotion_ranges("base"))
    randomizer.apply()
    for k in range(20):
        randomizer.reset(np.array([k % 6, (k + 3) % 6]))
    twin = Randomizer(other, locomotion_ranges("base"))
    for name, values in twin.memory().items():
        values[...] = randomizer.memory()[name]
    twin.write()
    for name in ("kp", "kd", "torque_limit", "damping", "friction", "armature", "delay", "encoder_bias",
                 "mass_scale", "com_offset", "inertia", "contact_friction", "contact_dampratio",
                 "contact_timeconst", "gravity"):  # fmt: skip
        np.testing.assert_array_equal(sim.params.get(name), other.params.get(name), err_msg=name)


def test_parameters_computed_together_are_those_computed_one_by_one():
    ranges = locomotion_ranges("base") | {"armature": Draw(operation="add", low=0.0, high=0.01)}
    together, single = (Randomizer(make(5), ranges) for _ in range(2))
    single._targets._joints = None  # the plain way: every parameter by itself
    for randomizer in (together, single):
        randomizer.apply()
    for name in together._targets.touched:
        np.testing.assert_array_equal(together._sim.params.get(name), single._sim.params.get(name), err_msg=name)


def test_hidden_factors_are_the_drawn_numbers_in_their_ranges():
    sim = make(32)
    ranges = {
        "contact_friction": Draw(operation="set", low=0.5, high=1.5, factor=True),
        "kp": Draw(operation="scale", low=0.8, high=1.2),
    }
    randomizer = Randomizer(sim, ranges)
    randomizer.apply()
    np.testing.assert_allclose(randomizer.factors[:, 0], 2.0 * (sim.params.get("contact_friction") - 1.0), atol=1e-6)
    assert randomizer.factors.shape == (32, 1)


def test_unknown_names_are_refused():
    with pytest.raises(TrueupError, match="payload"):
        Randomizer(make(1), {"payloads": Draw(operation="set", low=0, high=1)})


def test_the_trunk_of_a_robot_whose_root_has_no_mass_is_loaded(tmp_path):
    """URDFs float on an empty link: masses of the base are those of the link that is fixed to it."""
    text = (ZOO / "go2" / "model.xml").read_text()
    start, end = text.index("<inertial"), text.index('<geom name="trunk"')
    inertial = text[start:end]
    moved = text.replace(inertial, f'<body name="shell">{inertial}</body>', 1).replace("<geom ", '<geom mass="0" ')
    (tmp_path / "model.xml").write_text(moved)
    robot = replace(load_robot("go2"), model_path=tmp_path / "model.xml")
    sim = BatchSim(robot, SimCfg(nsim=4, threads=1))
    assert trunk_body(sim.model, robot) == "shell"
    ranges = {
        "payload": Draw(operation="set", low=2.0, high=2.0),
        "mass_scale": Draw(operation="set", low=1.5, high=1.5, of=("shell",)),
    }
    Randomizer(sim, ranges).apply()
    assert sim.params.get("mass_scale")[0, sim.params.body_names.index("shell")] == pytest.approx(1.5 + 2.0 / 6.921)


def test_a_range_of_an_unknown_body_is_refused():
    with pytest.raises(TrueupError, match="'bse'.*did you mean 'base'"):
        Randomizer(make(nsim=2), {"mass_scale": Draw(operation="set", low=0.9, high=1.1, of=("bse",))})
