from __future__ import annotations

import random
from pathlib import Path

import msgspec
import numpy as np
import pytest

from trueup.core.documents import parse_toml
from trueup.core.errors import TrueupError
from trueup.hardware.twin_cfg import TwinCfg
from trueup.robot.load import load_robot, zoo_names
from trueup.twin.firmware import Twin
from trueup.twin.truth.preset import PRESETS, Preset, preset_names, read_preset
from trueup.twin.truth.truth import truth_json


def test_the_promised_presets_ship() -> None:
    plain, late = {"ideal", "pace", "mild", "harmonic", "worn", "payload"}, {"ankles", "ground", "payload"}
    assert set(preset_names()) == plain | {"late"} | {f"late_{what}" for what in late}
    for name in preset_names():
        assert read_preset(name).description


def test_ideal_has_no_effect_and_pace_only_the_49() -> None:
    ideal, pace = read_preset("ideal"), read_preset("pace")
    effects = ("friction", "transmission", "motor", "supply", "heat", "body", "payload", "ground")
    for preset in (ideal, pace):
        assert all(getattr(preset, name) is None for name in effects)
    assert ideal == Preset(schema=1, description=ideal.description)
    assert pace.delay is not None
    assert pace.delay.jitter == 0.0
    assert pace.joint.torque_scale == 1.0
    robot = load_robot("go2")
    truth = Twin(robot, TwinCfg(preset="pace", seed=3)).truth
    drawn = [truth.joint.armature, truth.joint.damping, truth.joint.friction, truth.joint.encoder_bias]
    assert sum(len(np.unique(values)) for values in drawn) + 1 == 49
    assert 0.004 <= truth.delay_s <= 0.012


@pytest.mark.parametrize("preset", ["late", "late_ankles", "late_ground", "late_payload"])
@pytest.mark.parametrize("seed", [0, 7])
def test_late_twins_of_a_humanoid_are_off_by_as_much_as_matters(preset: str, seed: int) -> None:
    robot = load_robot("g1")
    ideal, truth = (Twin(robot, TwinCfg(preset=name, seed=seed)).truth for name in ("ideal", preset))
    assert 0.02 <= truth.delay_s <= 0.03
    more = (truth.joint.friction - ideal.joint.friction) / robot.spec.torque_limit
    assert 0.03 <= more.min() < more.max() <= 0.06
    assert (truth.ground is not None) == (preset == "late_ground")
    assert (truth.payload is not None) == (preset == "late_payload")


def test_weak_joints_are_those_named_and_others_keep_their_torque() -> None:
    g1, arm = (Twin(load_robot(name), TwinCfg(preset="late_ankles", seed=2)) for name in ("g1", "so101"))
    is_ankle = np.array(["ankle" in name for name in g1.robot.spec.joint_names])
    scale = g1.truth.joint.torque_scale
    assert is_ankle.sum() == 4
    assert ((scale[is_ankle] >= 0.55) & (scale[is_ankle] <= 0.75)).all()
    assert len(np.unique(scale[is_ankle])) == 4
    assert (scale[~is_ankle] == 1.0).all()
    assert (arm.truth.joint.torque_scale == 1.0).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "schema"),
        ("schema = 1\n[weak]\ntorque_scale = 0.5", "joints"),
        ('schema = 1\n[weak]\njoints = ["knee"]\ntorque_scale = 0.01', "within"),
        ("schema = 1\n[joint]\nfriction_share = 0.9", "within"),
        ("schema = 2", "schema 2"),
        ("schema = 1\n[jiont]", "jiont"),
        ("schema = 1\n[joint]\nmass = 1", "mass"),
        ("schema = 1\n[joint]\narmature_scale = [2, 1]", "low <= high"),
        ("schema = 1\n[joint]\narmature_scale = nan", "finite"),
        ("schema = 1\n[joint]\narmature_scale = [1, 2, 3]", "armature_scale"),
        ("schema = 1\n[joint]\nencoder_bias = 7", "within"),
        ('schema = 1\n[friction]\nkind = "honey"', "honey"),
        ("schema = 1\n[friction]\nstiction = 1", "kind"),
        ("schema = 1\n[supply]\nsag = 0.1", "motor"),
        ("schema = 1\n[heat]\nderate_from = 90\nderate_to = 80", "derate_to"),
        ("schema = 1\n[", "TOML"),
        ("schema = 1\nphysics_hz = " + "9" * 5000, "longer than"),
        ("schema = " + "[" * 1900, "deep|TOML"),
    ],
)
def test_a_wrong_preset_names_file_and_fault(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(TrueupError, match=words) as caught:
        read_preset(file)
    assert str(file) in str(caught.value)


def test_an_unknown_preset_lists_or_guesses() -> None:
    with pytest.raises(TrueupError, match="did you mean 'harmonic'"):
        read_preset("harmonik")
    with pytest.raises(TrueupError, match="shipped: harmonic"):
        read_preset("no/such.toml")


def test_draws_hang_on_seed_and_name_alone(tmp_path: Path) -> None:
    file = tmp_path / "more.toml"
    text = (PRESETS / "pace.toml").read_text()
    file.write_text(
        text.replace("[sensors]", "[motor]\nno_load_speed = [1, 2]\n[body]\nmass_scale = [0.9, 1.1]\n[sensors]")
    )
    robot = load_robot("so101")
    one, same, other, more = (
        Twin(robot, TwinCfg(preset=preset, seed=seed)).truth
        for preset, seed in (("pace", 1), ("pace", 1), ("pace", 2), (str(file), 1))
    )
    assert truth_json(one) == truth_json(same)
    assert not np.allclose(one.joint.armature, other.joint.armature)
    assert np.array_equal(one.joint.armature, more.joint.armature)  # further effects do not move these draws
    assert one.delay_s == more.delay_s
    assert len(np.unique(one.joint.armature)) == robot.spec.njoint  # unequal motors


@pytest.mark.parametrize("robot", zoo_names())
@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_runs_on_every_robot_and_stays_sane(robot: str, preset: str) -> None:
    spec = load_robot(robot).spec
    twin = Twin(load_robot(robot), TwinCfg(preset=preset, seed=5, command_hz=100.0))
    n = spec.njoint
    swing = np.minimum(0.3, 0.3 * (spec.position_high - spec.position_low))
    middle = np.clip(spec.default_pose, spec.position_low + swing, spec.position_high - swing)
    for _ in range(100):
        goal = spec.default_pose + (middle - spec.default_pose) * min(1.0, 2 * twin.time_s)
        goal = goal + swing * np.sin(2 * np.pi * twin.time_s) * min(1.0, twin.time_s)
        twin.command(np.stack([goal, np.zeros(n), spec.kp, spec.kd, np.zeros(n)]))
        twin.period()
        state = twin.state()
        assert np.isfinite(state.joint_pos).all()
        assert np.all(np.abs(state.joint_vel) < 3 * spec.velocity_limit + 10)
    assert twin.tap().diverged == 0
    assert twin.tap().accepted == 100
    assert np.abs(state.joint_pos - goal).max() < 0.5


def _mutate(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(rng.randint(1, 4)):
        k = rng.randrange(len(lines))
        match rng.randrange(7):
            case 0:
                del lines[k]
            case 1:
                lines.insert(k, rng.choice(lines))
            case 2:
                at = rng.randrange(len(lines[k]) + 1)
                lines[k] = lines[k][:at] + rng.choice("[]={}\"'.,-#\n\x00é1eE_ ") + lines[k][at:]
            case 3:
                key, equals, _ = lines[k].partition("=")
                value = rng.choice(
                    ["nan", "inf", "-1", "0", "1e308", "1e-300", "9" * 25, "[0, 1]", "[[1]]", '"x"', "true", "{}"]
                )
                lines[k] = f"{key}{equals} {value}"
            case 4:
                lines[k] = lines[k].replace("0.", rng.choice(["-0.", "10.", "0.0000"]), 1)
            case 5:
                lines[k] = lines[k][: rng.randrange(len(lines[k]) + 1)]
            case 6:
                lines.insert(
                    k, rng.choice(["[heat]", "[supply]\nsag = [0, 0.9]", "[transmission]\nwindup = 1e-4", "[[joint]]"])
                )
        if not lines:
            lines = [""]
    return "\n".join(lines)


def test_a_thousand_mutated_presets_are_twins_or_trueup_errors(tmp_path: Path) -> None:
    rng = random.Random(11)
    texts = [(PRESETS / f"{name}.toml").read_text() for name in preset_names()]
    robot, file = load_robot("pendulum"), tmp_path / "mutated.toml"
    built = refused = 0
    for round_ in range(1000):
        text = _mutate(rng.choice(texts), rng)
        try:
            preset = parse_toml(text, Preset, "preset")
            if round_ % 4 == 0:
                file.write_text(text)
                twin = Twin(robot, TwinCfg(preset=str(file), seed=round_))
                twin.command(np.array([[1.0], [0.0], [20.0], [0.3], [0.0]]))
                twin.period()
                assert np.isfinite(twin.state().joint_pos).all()
                msgspec.json.decode(truth_json(twin.truth))
            assert preset.schema == 1
            built += 1
        except TrueupError:
            refused += 1
    assert built > 100
    assert refused > 300
