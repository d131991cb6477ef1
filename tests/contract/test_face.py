"""The Python face: a stage's package is also its verb, in any order of imports, with the command line's config."""

import inspect
import subprocess
import sys
from dataclasses import fields
from operator import attrgetter

import numpy as np
import pytest

import trueup as tu
from trueup.calibrate.config import CalibrateCfg
from trueup.calibrate.verbs import CalibrateVerb
from trueup.cli import _VERBS
from trueup.core.errors import TrueupError
from trueup.record.verbs import RecordVerb
from trueup.train.play.verbs import PlayVerb
from trueup.train.verbs import TrainVerb

ORDERS = {
    "verb first": "import trueup as tu; f = tu.calibrate; import trueup.calibrate.parameters; g = tu.calibrate",
    "package first": "import trueup.calibrate; import trueup as tu; f = trueup.calibrate; g = tu.calibrate",
    "submodule first": "import trueup.calibrate.fit.fit as m; import trueup as tu; f = g = tu.calibrate; m.Fitter",
    "from": "from trueup import calibrate as f; from trueup.calibrate import fit; import trueup; g = trueup.calibrate",
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_stage_is_a_package_and_a_verb_whatever_was_imported_first(order):
    code = (
        f"{ORDERS[order]}\n"
        "import sys, trueup\n"
        "assert f is g is sys.modules['trueup.calibrate'], (f, g)\n"
        "assert callable(f) and f.__path__\n"
        "try:\n    f('go2', ['nowhere.mcap'])\n"
        "except trueup.TrueupError as error:\n    assert 'no such file' in str(error)\n"
        "else:\n    raise SystemExit('it was not called')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_flags_left_alone_give_the_config_of_the_function():
    verb = CalibrateVerb(logs=(), robot="go2", out=None)  # type: ignore[arg-type]
    assert verb.cfg == CalibrateCfg()


# what every verb of the command line is in Python
FUNCTIONS = {
    "robot list": "zoo_names", "robot inspect": "inspect_robot", "robot init": "init_robot",
    "robot export": "export_calibration", "twin serve": "serve_twin", "twin reveal": "reveal_twin",
    "twin list": "twin_presets", "data check": "check_log", "data import": "import_logs",
    "data convert": "write_log_file", "data recover": "recover", "calibrate actuator": "calibrate.actuator",
    "calibrate delta": "calibrate.delta", "calibrate load": "calibrate.load", "motion list": "made_motions",
    "motion import": "import_motion", "motion retarget": "retarget_motion", "motion check": "check_motion",
    "motion play": "play_motion", "task list": "task_names", "task init": "init_task",
    "policy import": "import_policy", "policy feedforward": "feedforward", "deploy page": "deploy_page",
    "deploy replay": "replay_recording", "sim": "drop",
}  # fmt: skip


@pytest.mark.parametrize("verb", _VERBS)
def test_every_verb_of_the_command_line_is_a_function_with_a_docstring(verb):
    name = FUNCTIONS.get(verb, verb)
    assert name.split(".")[0] in dir(tu)
    found = attrgetter(name)(tu)
    assert callable(found)
    assert found.__doc__
    assert inspect.signature(found)


def test_the_verb_names_a_missing_file():
    with pytest.raises(TrueupError, match="no such file"):
        tu.calibrate("go2", "nowhere.mcap", params="pace")


def test_dir_lists_the_verbs_and_signatures_are_the_real_ones():
    assert {"calibrate", "record", "train", "play", "score", "check_log", "import_logs", "doctor"} <= set(dir(tu))
    assert not [name for name in dir(tu) if name.startswith("_") and name != "__version__"]
    for verb, option in ((tu.train, "learner"), (tu.calibrate, "params"), (tu.record, "driver")):
        assert option in inspect.signature(verb).parameters
        assert verb.__doc__
    assert "policy" in tu.train.__doc__


@pytest.mark.parametrize(("verb", "config"), [(tu.train, TrainVerb), (tu.play, PlayVerb)])
def test_the_function_takes_every_option_of_the_command(verb, config):
    parameters = inspect.signature(verb).parameters
    assert list(parameters) == [one.name for one in fields(config)]
    assert all(parameters[one.name].default == one.default for one in fields(config))
    with pytest.raises(TypeError, match="no_such_option"):
        verb(no_such_option=1)


# options that a function takes under another name, or that only print
ELSEWHERE = {"for_": "excitation=tu.plan_active(robot, fit).rehearsal", "dry_run": "plan_session", "page": "tu.report"}


def test_recording_takes_the_options_of_its_command():
    options = {one.name for one in fields(RecordVerb)}
    assert options - set(inspect.signature(tu.record).parameters) == set(ELSEWHERE)


def test_a_recording_in_python_moves_the_joints_that_were_named(tmp_path):
    out = tmp_path / "log.mcap"
    log = tu.record("go2", seconds=3.0, joints=("FL_calf_joint",), rate=100.0, out=out)
    asked = np.ptp(log["target_pos"], axis=0)
    assert [name for name, way in zip(log.joint_names, asked, strict=True) if way > 0.2] == [
        "FL_calf_joint"
    ]  # less: to the start
    np.testing.assert_allclose(np.diff(log.time), 0.01, atol=1e-6)
    with pytest.raises(TrueupError, match="there is a recording here already"):
        tu.record("go2", seconds=2.0, out=out)


def test_a_package_that_is_a_verb_runs_the_stages_own_function():
    from trueup.calibrate.actuator.ladder import run_ladder
    from trueup.calibrate.calibrate import calibrate

    for verb, function in ((tu.calibrate, calibrate), (tu.calibrate.actuator, run_ladder)):
        assert inspect.signature(verb) == inspect.signature(function)
        assert verb.__doc__ == function.__doc__


def test_a_log_is_checked_against_a_robot():
    robot = tu.load_robot("pendulum")
    time = np.arange(0.0, 4.0, 0.01)
    pos = 0.3 * np.sin(3.0 * time)[:, None]
    made = tu.Log(
        time=time, joint_names=("nobody",), signals={"joint_pos": pos, "joint_vel": np.gradient(pos, 0.01, axis=0)}
    )
    alone, against = tu.check_log(made), tu.check_log(made, robot)
    assert len(against.findings) > len(alone.findings)  # the robot has no such joint
    assert [one.code for one in tu.check_log(made, "pendulum").findings] == [one.code for one in against.findings]
