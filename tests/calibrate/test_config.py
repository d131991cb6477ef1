"""Flags of the verbs are the fields of the stages' own settings, once each; no physics is loaded for them."""

import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import tyro

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.config import CalibrateCfg, FitCfg, WindowCfg
from trueup.calibrate.verbs import ActuatorVerb, CalibrateVerb
from trueup.core.errors import TrueupError

NEEDED = ["log.mcap", "--robot", "go2", "--out", "out"]


def parsed(verb: type, *flags: str) -> Any:
    return tyro.cli(verb, args=[*NEEDED, *flags], config=(tyro.conf.OmitArgPrefixes,))


def leaves(settings: object) -> list[str]:
    out = []
    for one in fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, one.name)
        out += leaves(value) if is_dataclass(value) else [one.name]
    return out


@pytest.mark.parametrize(("verb", "cfg"), [(CalibrateVerb, CalibrateCfg()), (ActuatorVerb, LadderCfg())])
def test_without_flags_the_settings_are_those_of_the_function(verb: type, cfg: object):
    assert parsed(verb).cfg == cfg


def test_flags_reach_windows_and_search():
    words = "--params pace,kp --tie kind --base free --physics 200 --holdout-share 0.1 --no-check"
    more = "--window inf --max-windows 7 --method pace --evaluations 64 --loss huber --seed 3"
    assert parsed(CalibrateVerb, *words.split(), *more.split()).cfg == CalibrateCfg(
        params="pace,kp",
        tie="kind",
        base="free",
        physics_hz=200.0,
        holdout_share=0.1,
        check=False,
        window=WindowCfg(window_s=float("inf"), max_windows=7),
        fit=FitCfg(method="pace", evaluations=64, loss="huber", seed=3),
    )


def test_flags_reach_the_ladder_and_held_out_logs_are_not_the_share():
    verb = parsed(
        ActuatorVerb, *["--rungs", "pd,uan", "--uan-method", "rl", "--long-s", "5", "--holdout", "a.mcap", "b.mcap"]
    )
    assert verb.cfg == LadderCfg(rungs="pd,uan", uan_method="rl", long_s=(5.0,))
    assert verb.holdout == (Path("a.mcap"), Path("b.mcap"))


@pytest.mark.parametrize(("verb", "cfg"), [(CalibrateVerb, CalibrateCfg()), (ActuatorVerb, LadderCfg())])
def test_no_setting_is_written_twice(verb: type, cfg: object):
    own = [one.name for one in fields(verb) if one.name != "cfg"]
    names = [*own, *leaves(cfg)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (WindowCfg, {"window_s": 0.0}, "window_s must be positive"),
        (WindowCfg, {"max_windows": 0}, "at least 1"),
        (FitCfg, {"iterations": 0}, "at least 1"),
        (CalibrateCfg, {"holdout_share": -0.1}, "found -0.1"),
        (LadderCfg, {"holdout_share": 0.0}, "held-out data"),
        (LadderCfg, {"rungs": "pd,pase"}, "did you mean"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_words(kind: type, settings: dict, words: str):
    with pytest.raises(TrueupError, match=words):
        kind(**settings)


def test_a_baseline_is_one_of_the_published_methods():
    assert CalibrateCfg(fit=FitCfg(method="lbfgsb")).is_baseline
    assert not CalibrateCfg(fit=FitCfg(method="global")).is_baseline


def test_the_command_line_loads_neither_physics_nor_learners():
    code = "import sys, trueup.cli; print(sorted({'mujoco', 'scipy', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
