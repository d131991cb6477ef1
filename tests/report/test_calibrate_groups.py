"""Like joints in one row, and the verdict of a calibration in words with the command that comes next."""

import msgspec
import pytest
from made_calibration import made_calibration

from trueup.report.calibration.summary import Group, fit_verdict, grouped, kind_errors, motions_to_record, short_notes
from trueup.robot.load import load_robot
from trueup.world.fitted.calibration import Calibration, FitScore

GO2 = load_robot("go2")
RESULT = made_calibration(GO2, ("friction", "delay"))


def changed(**fields: object) -> Calibration:
    return msgspec.structs.replace(RESULT, **fields)


def scored(mrad: float, spread: tuple[float, float] | None = None) -> FitScore:
    low, high = spread or (mrad, mrad)
    return FitScore(
        open_loop=[1e-3 * mrad] * 12,
        window=[1e-3 * mrad] * 12,
        open_loop_mean=1e-3 * mrad,
        window_mean=1e-3 * mrad,
        spread=(1e-3 * low, 1e-3 * high),
    )


def test_like_joints_are_one_row_with_the_median_and_the_widest_interval():
    values = (0.1, 0.2, 0.4, 0.9)
    hips = [k for k, e in enumerate(RESULT.estimates) if "hip" in e.parameter.label]
    new = list(RESULT.estimates)
    for k, value in zip(hips, values, strict=True):
        new[k] = msgspec.structs.replace(new[k], value=value, interval=(value / 2, value * 2), nominal=0.3)
    new[hips[0]] = msgspec.structs.replace(new[hips[0]], nominal_excluded=True, verdict="weak")
    groups = grouped(changed(estimates=tuple(new)))
    assert [group.name for group in groups] == [
        "friction hip, N m",
        "friction thigh, N m",
        "friction calf, N m",
        "delay, s",
    ]
    hip = groups[0]
    assert hip.median == pytest.approx(0.3)
    assert hip.interval == (0.05, 1.8)
    assert (hip.nominal, hip.excluded) == (0.3, "1/4")
    assert (hip.verdict, hip.worst, hip.status) == ("3 identified 1 weak", "weak", "warn")
    assert (groups[-1].verdict, groups[-1].excluded) == ("identified", "")


def test_a_group_of_one_keeps_its_bound_in_words():
    one = RESULT.estimates[-1]
    bounded = msgspec.structs.replace(one, verdict="bounded", interval=(one.parameter.low, 0.004), value=0.001)
    assert Group(name="delay, s", estimates=(bounded,)).verdict == "at most 0.004"


def test_errors_of_like_joints_are_means():
    before = msgspec.structs.replace(scored(1.0), open_loop=[1e-3 * k for k in range(12)])
    rows = kind_errors(changed(holdout_nominal=before, holdout_calibrated=scored(2.0)))
    assert [row[0] for row in rows] == ["hip", "thigh", "calf"]
    assert [row[1] for row in rows] == pytest.approx([4.5, 5.5, 6.5])  # hips are joints 0, 3, 6, 9
    assert [row[2] for row in rows] == pytest.approx([2.0] * 3)


@pytest.mark.parametrize(
    ("nominal", "calibrated", "spread", "words", "status"),
    [
        (26.0, 2.6, (2.0, 3.0), "10.0 times better", "good"),
        (2.8, 2.6, (2.0, 3.0), "no better than", "warn"),
        (1.3, 2.6, (2.0, 3.0), "2.0 times WORSE", "bad"),
    ],
)
def test_the_headline_says_by_what_factor_unless_it_is_within_the_scatter(nominal, calibrated, spread, words, status):
    found = fit_verdict(changed(holdout_nominal=scored(nominal), holdout_calibrated=scored(calibrated, spread)))
    assert words in found.headline
    assert "held-out" in found.headline
    assert found.status == status


def test_without_held_out_data_the_headline_does_not_claim_any():
    found = fit_verdict(
        changed(holdout_nominal=None, holdout_calibrated=None, fit_nominal=scored(9.0), fit_calibrated=scored(3.0))
    )
    assert "fitted to (nothing is held out) 3.0 times better" in found.headline
    assert found.status == "warn"


def test_the_next_command_is_the_one_that_helps_most():
    assert fit_verdict(RESULT, out="fit/").command.startswith("trueup train TASK --params fit/")
    vague = made_calibration(GO2, ("friction", "delay"), deviation={"friction": 0.4})
    assert "--excitation active --for fit/" in fit_verdict(vague, out="fit/").command
    misfit = msgspec.structs.replace(RESULT.misfit, left=[5e-3] * 12)
    own = fit_verdict(changed(misfit=misfit), "a.mcap", robot="my_dog/")
    assert "--robot my_dog/" in own.command  # a folder, whose name is not that of the robot in it
    lacking = fit_verdict(changed(misfit=misfit), "a.mcap b.mcap")
    assert lacking.command.startswith("trueup calibrate actuator a.mcap b.mcap --robot go2")
    assert "the model lacks something" in lacking.paragraph
    alarmed = fit_verdict(changed(misfit=misfit, alarms=("two robots",)), "a.mcap")
    assert alarmed.command.startswith("trueup data check a.mcap")
    assert alarmed.status == "bad"
    assert alarmed.paragraph.startswith("DOUBTFUL: two robots. The calibrated model")
    effort = msgspec.structs.replace(RESULT.effort, interrupted=True)
    assert fit_verdict(changed(effort=effort)).command.endswith("--resume")


def test_motions_are_named_once_without_the_partner_the_commonest_first():
    first, *rest = RESULT.estimates
    slow = "cannot be told from {}; record triangle waves: slow and fast"
    new = [msgspec.structs.replace(e, advice=slow.format(k)) for k, e in enumerate(rest)]
    steps = msgspec.structs.replace(first, advice="record steps")
    assert motions_to_record(changed(estimates=(steps, *new))) == [
        ("friction (11), delay", "triangle waves: slow and fast"),
        ("friction", "steps"),
    ]


def test_notes_are_cut_to_their_first_clause_each_once():
    notes = (
        "held out: the last 5.1 s; another motion would be harder",
        "like joints came out unlike in friction: FL 1, FR 2. Joints are built alike",
        "like joints came out unlike in friction: RL 3, RR 4. Joints are built alike",
        "short",
    )
    assert short_notes(notes) == [
        "held out: the last 5.1 s",
        "like joints came out unlike in friction",
        "short",
    ]
