"""The tables by parameter name: bounds that hold their priors, sets whose names exist, advice for everything fitted."""

import pytest

from trueup.calibrate.rules import FULL, NEVER_TIED, PACE, RULES, SEPARATES, SERVO, SETS, SHOWS
from trueup.models.friction import LAWS
from trueup.world.parameters.params import PARAMETERS


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_a_parameter_room_and_a_prior_inside(name):
    rule = RULES[name]
    assert (rule.name or name) in PARAMETERS
    assert rule.low < rule.high
    assert rule.width > 0.0
    if rule.scale == "log":  # the logarithm must exist at the lower bound
        assert rule.low + rule.offset > 0.0
    if rule.mean is not None:
        assert rule.low <= rule.mean <= rule.high
    if rule.mode == "times":  # a factor of one is always allowed
        assert rule.low < 1.0 < rule.high


def test_sets_are_made_of_rules_without_repetition():
    for names in SETS.values():
        assert set(names) <= set(RULES)
        assert len(names) == len(set(names))
    assert set(PACE) < set(FULL)
    assert set(PACE) < set(SERVO)


def test_a_friction_set_is_pace_with_the_model_s_own_coefficients():
    assert SETS["friction:M1"] == PACE  # viscous and Coulomb friction are PACE's damping and friction
    for model, law in LAWS.items():
        assert SETS[f"friction:{model}"] == (*PACE, *(f"friction_{name}" for name in law.coefficients))


def test_everything_that_can_be_fitted_has_advice_what_to_record():
    assert {rule.name or name for name, rule in RULES.items()} <= set(SHOWS)
    assert all(len(pair) == 2 and pair <= set(RULES) for pair in SEPARATES)
    assert set(RULES) >= NEVER_TIED
