"""The passport: what must agree within it, units and frames, names of columns."""

import msgspec
import pytest
from made_bundles import JOINTS, OBSERVATION, RobotFacts, make_passport

from trueup.core.errors import TrueupError
from trueup.policy.bundle.passport import GoalFacts, Passport, PolicyOrigin, RobotIdentity, column_names, term_facts
from trueup.policy.bundle.robot_check import check_against_robot, contradictions
from trueup.policy.observation import OWN_SIGNALS, ObservationSpec, Term
from trueup.policy.signal_facts import FACTS
from trueup.tasks.sensing.signals import SIGNALS


def test_a_passport_comes_back_from_json_as_it_was():
    passport = make_passport()
    assert msgspec.json.decode(msgspec.json.encode(passport), type=Passport) == passport
    assert passport.joint_names == JOINTS
    low, high = passport.bounds
    # of the command its whole range: goal +-1, +-0.5, +-1 times the scales 2, 2, 0.25, beside the measured 0 to 1
    frame_low, frame_high = [0.0] * 6 + [-2.0, -1.0, -0.25] + [0.0] * 9, [1.0] * 6 + [2.0, 1.0, 1.0] + [1.0] * 9
    assert (low.tolist(), high.tolist()) == (frame_low * 2, frame_high * 2)
    assert make_passport(ranges=None, ranges_missing="never run").bounds is None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema": 2}, "schema 2"),
        ({"signs": (1, 1)}, "signs: 2 numbers for 3"),
        ({"signs": (1, 1, -1)}, "signs: -1 does not fit the scale 0.25 of action"),
        ({"signs": (1, 1, 0)}, "signs: 0"),
        ({"torque_limit": (1.0,)}, "torque_limit: 1 numbers for 3"),
        ({"torque_limit": (1.0, 0.0, 1.0)}, "must be positive"),
        ({"torque_limit": (1.0, float("nan"), 1.0)}, "finite"),
        ({"physics_hz": 210.0}, "physics_hz 210 must be a whole multiple of control_hz 50"),
        ({"physics_hz": 25.0}, "whole multiple"),
        ({"robot": RobotIdentity(name="other", model_sha256="0")}, "'toy', robot.name is 'other'"),
        ({"goal": GoalFacts(columns=("x",), units=("m",), low=(0,), high=(1,))}, "goal.columns: 1 numbers for 3"),
        ({"terms": ()}, "0 terms for 6"),
    ],
)
def test_what_does_not_agree_is_refused_by_name(changes, named):
    with pytest.raises(ValueError, match=named):
        make_passport(**changes)


@pytest.mark.parametrize(("key", "value"), [("frame", "world"), ("unit", "deg/s"), ("width", 4), ("signal", "gravity")])
def test_another_frame_or_unit_than_a_robot_gives_is_refused_with_both(key, value):
    first, *rest = term_facts(OBSERVATION)
    with pytest.raises(ValueError, match=f"{key} of gyro is {value!r}, but what a robot gives is"):
        make_passport(terms=(msgspec.structs.replace(first, **{key: value}), *rest))


def test_every_signal_of_the_builder_has_a_unit_which_the_simulator_shares():
    assert set(FACTS) == set(OWN_SIGNALS)
    for name in set(FACTS) & set(SIGNALS):
        assert SIGNALS[name].unit == FACTS[name].unit


def test_units_of_signals_that_come_with_the_reading_are_the_tasks():
    spec = ObservationSpec(
        joint_names=("a",),
        default_pose=(0.0,),
        terms=(Term("heights"), Term("joint_vel")),
        ncommand=0,
        naction=1,
        widths={"heights": 2},
    )
    heights, joint_vel = term_facts(spec, {"heights": "m", "joint_vel": "km/h"})
    assert (heights.unit, heights.width) == ("m", 2)
    assert joint_vel.unit == "rad/s"


def test_columns_have_names_with_their_age():
    names = column_names(OBSERVATION)
    assert len(names) == OBSERVATION.nactor == 36
    assert names[:3] == ("gyro x -1", "gyro y -1", "gyro z -1")
    assert names[9 + 18] == "joint_pos hip"
    assert names[-1] == "action z"


def test_columns_by_term_have_names_too():
    by_term = msgspec.structs.replace(OBSERVATION, by_term=True, ages=(0, 1))
    assert column_names(by_term)[:6] == ("gyro x", "gyro y", "gyro z", "gyro x -1", "gyro y -1", "gyro z -1")


# --- against the robot ---
def changed(**values):
    robot = RobotFacts()
    for name, value in values.items():
        setattr(robot, name, value)
    return robot


def test_a_passport_of_the_robot_is_taken():
    check_against_robot(make_passport(), RobotFacts())
    check_against_robot(make_passport(), RobotFacts(), "0" * 64)


def spec_with(**changes):
    return {"policy": msgspec.structs.replace(make_passport().policy, **changes)}


def action_with(**changes):
    return spec_with(action=msgspec.structs.replace(make_passport().policy.action, **changes))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (spec_with(control_hz=5.0), "it runs at 5 Hz, the robot at 50 Hz"),
        (spec_with(kp=(20.0, 201.0, 15.0)), "kp of knee is 201 N m/rad, the robot allows 0.4 to 200"),
        (spec_with(kd=(0.001, 0.5, 0.4)), "kd of hip is 0.001"),
        (action_with(default_pose=(0.1, -0.4, 1.6)), "default pose of ankle is 1.6 rad, the robot allows -1.5 to 1.5"),
        (action_with(high=(1.0, 1.0, 2.0)), "highest target of ankle is 2 rad"),
        (action_with(scale=(0.25, 4.0, 0.25)), "action scale of knee is 4 rad"),
        ({"torque_limit": (20.0, 20.0, 20.0)}, "torque limit of ankle is 20 N m, the robot allows 0 to 10.01"),
        (
            action_with(default_pose=(0.1, -0.3, 0.3)),
            r"default pose of knee \(action\) is -0.3 rad, the robot's is -0.4",
        ),
    ],
)
def test_what_the_robot_knows_better_is_refused_with_both_values(changes, named):
    with pytest.raises(TrueupError, match=named):
        check_against_robot(make_passport(**changes), RobotFacts())


def test_other_robots_joints_and_models_are_refused():
    with pytest.raises(TrueupError, match="it is for 'toy'"):
        check_against_robot(make_passport(), changed(name="go2"))
    with pytest.raises(TrueupError, match="only one of them has: ankle, foot"):
        check_against_robot(make_passport(), changed(joint_names=("foot", "hip", "knee")))
    with pytest.raises(TrueupError, match=r"trained on the model 000000000000\.\.\., this robot's is 111111111111"):
        check_against_robot(make_passport(), RobotFacts(), "1" * 64)


def test_imported_policies_may_stand_in_another_pose():
    other = action_with(default_pose=(0.1, -0.3, 0.3))
    assert contradictions(make_passport(**other, origin=PolicyOrigin(format="rl_sar")), RobotFacts()) == []
    assert len(contradictions(make_passport(**other), RobotFacts())) == 1
