"""Rewards of a robot twice as large that moves alike: each grows as the law of its unit says."""

import numpy as np
import pytest
from made_figures import figures

from trueup.tasks.sensing.frame import Frame
from trueup.tasks.similar import laws as units
from trueup.tasks.similar.laws import TERMS, Laws, rounded, unit_of
from trueup.tasks.similar.scale import scale_term
from trueup.tasks.terms import rewards as r

# Twice as large in every direction and of the same stuff: 2 in length, 8 in mass, sqrt(2) in time.
ROOT = np.sqrt(2.0)
DOUBLE = Laws(figures(), figures(mass=80.0, leg=0.6))
SIGNAL_UNITS = {
    "joint_vel": units.RATE,
    "joint_torque": units.TORQUE,
    "base_vel": units.SPEED,
    "base_spin": units.RATE,
    "base_height": units.LENGTH,
    "foot_height": units.LENGTH,
    "foot_vel": units.SPEED,
    "air_time": units.TIME,
    "swing_peak": units.LENGTH,
}
# kernels keep their widths in m/s, as commands do; standing quietly adds speeds and feet
OWN_WIDTHS = ("track_velocity", "track_turn", "track_velocity_closely", "track_turn_closely", "stand_quiet")
OBJECTS = {
    "height": r.Height(0.5),
    "air_time": r.AirTime(0.1, 10.0),
    "clearance": r.Clearance(0.5),
    "swing_height": r.SwingHeight(0.5),
}


def walking(laws=None):
    """A frame in which no term is zero; with laws, that of a robot that moves alike at another scale."""
    rng = np.random.default_rng(0)
    f = Frame(4, {}, None)

    def some(*shape):
        return rng.uniform(0.2, 0.4, (4, *shape)).astype(np.float32)

    for name in ("joint_pos", "joint_vel", "joint_torque", "action"):
        setattr(f, name, some(12))
    for name in ("foot_height", "air_time", "swing_peak"):
        setattr(f, name, some(4))
    f.base_vel, f.base_spin, f.gravity, f.foot_vel = some(3), some(3), some(3), some(4, 3)
    f.base_height, f.last_action, f.default_pose = some(), np.zeros((4, 12), np.float32), np.zeros(12, np.float32)
    f.joint_low, f.joint_high = np.full(12, -0.1, np.float32), np.full(12, 0.1, np.float32)
    f.command = np.array([[0.5, 0, 0]] * 2 + [[0, 0, 0]] * 2, np.float32)
    f.foot_contact = np.array([[1, 0, 0, 1]] * 4, bool)
    f.touchdown, f.body_contact = np.ones((4, 4), bool), np.ones(4, bool)
    for name, unit in SIGNAL_UNITS.items() if laws is not None else ():
        setattr(f, name, getattr(f, name) * np.float32(laws.ratio(unit)))
    return f


@pytest.mark.parametrize("name", sorted(set(TERMS) - set(OWN_WIDTHS)))
def test_a_robot_that_moves_alike_is_charged_by_the_law_of_the_unit(name):
    term = OBJECTS.get(name) or getattr(r, name)
    made = scale_term(term, DOUBLE, 1.0 if name == "height" else None)  # twice the 0.5 m above
    scaled = term if not made.arguments else type(term)(*(argument.after for argument in made.arguments))
    before, after = term(walking()), scaled(walking(DOUBLE))
    assert np.any(before != 0.0)
    np.testing.assert_allclose(after, before * DOUBLE.ratio(TERMS[name]), rtol=5e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("unit", "grows"),
    [
        (units.NONE, 1.0),
        (units.MASS, 8.0),
        (units.LENGTH, 2.0),
        (units.TIME, ROOT),
        (units.SPEED, ROOT),
        (units.RATE, 1.0 / ROOT),
        (units.FORCE, 8.0),
        (units.TORQUE, 16.0),
        (units.DAMPING, 16.0 * ROOT),
        (units.INERTIA, 32.0),
        (units.POWER, 8.0 * ROOT),
        (TERMS["torque"], 256.0),
        (TERMS["clearance"], 4.0 * ROOT),
        (TERMS["wobble"], 0.5),
        (TERMS["bounce"], 2.0),
        (TERMS["height"], 4.0),
    ],
)
def test_a_robot_twice_as_large(unit, grows):
    assert DOUBLE.ratio(unit) == pytest.approx(grows)


@pytest.mark.parametrize("unit", [one for one in {**TERMS, **units.PARAMETERS, **units.SUFFIXES}.values() if one.law])
def test_a_law_in_words_is_the_unit_in_numbers(unit):
    """Evaluated with m = 8, l = 2 and g = 1, the words give the ratio."""
    words = unit.law.replace("^", "**").replace(" ", " * ")
    value = eval(words, {"m": 8.0, "l": 2.0, "g": 1.0, "sqrt": np.sqrt})
    assert DOUBLE.ratio(unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("least_s", units.TIME),
        ("turn_rad_s", units.RATE),
        ("width_m_s", units.SPEED),
        ("lean_rad", units.NONE),
        ("target_m", units.LENGTH),
        ("most_nm", units.TORQUE),
        ("push_newton", units.FORCE),
        ("load_kg", units.MASS),
        ("beat_hz", units.RATE),
        ("most_w", units.POWER),
        ("share", units.NONE),
    ],
)
def test_the_end_of_a_name_tells_the_unit(name, unit):
    assert unit_of(name) == unit


def test_scaled_numbers_have_three_digits():
    assert (rounded(0.0123456), rounded(1234.5), rounded(-0.98765)) == (0.0123, 1230.0, -0.988)


def test_a_term_of_ones_own_keeps_its_numbers_and_says_so():
    def glide(frame):
        return frame.base_vel[:, 0]

    made = scale_term(glide, DOUBLE)
    assert (made.name, made.code, made.arguments, made.unit) == ("glide", None, (), None)


def test_a_function_that_only_has_the_name_of_a_known_one_is_not_written_as_the_known_one():
    def energy(frame):
        return frame.base_vel[:, 0]

    assert scale_term(energy, DOUBLE).code is None
