"""Planted twins under a policy that trots on the spot and turns: what was planted is the first symptom that is told.

A clean twin has none; what the changes of training come to is a task that training takes.
"""

import pytest
from twin_runs import Planted, preset_file, trotting_bundle, twin_run

import trueup as tu
from trueup.gap.symptoms.finding import read_table
from trueup.gap.symptoms.symptoms import symptoms
from trueup.gap.symptoms.task_file import function_name
from trueup.robot.load import load_robot
from trueup.tasks.load import load_task

pytestmark = pytest.mark.medium
TASK, ASKED = "go2-velocity", (0.0, 0.0, 0.4)
_LOOSE = """[sensors]
position_noise = 0.0003
velocity_noise = 8.0
torque_noise = 0.003
encoder_counts = 16384
gyro_noise = 0.003
acc_noise = 0.03
"""
_HOT = "[heat]\nrise = 3000.0\ntime_constant = 150.0\nderate_from = 80.0\nderate_to = 110.0\n"
PLANTED = {
    "clean": Planted(),
    "falls at set-down": Planted(crooked_rad=0.9),
    "jerky": Planted(sections=_LOOSE, without=("sensors",)),
    "slips when turning": Planted(sections="[ground]\nfriction = 0.12\n", without=("ground", "heat")),
    "overheats": Planted(sections=_HOT, without=("heat",)),
}


@pytest.fixture(scope="module")
def robot():
    return load_robot("go2")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return trotting_bundle(tmp_path_factory.mktemp("trot"))


@pytest.fixture(scope="module")
def runs(robot, bundle, tmp_path_factory):
    """Runs on twins, each made once: a planted symptom, put down so far from the pose."""
    folder, made = tmp_path_factory.mktemp("runs"), {}

    def run(name, crooked_rad=0.0):
        key, planted = (name, crooked_rad), PLANTED[name]
        if key not in made:
            crooked = crooked_rad or planted.crooked_rad
            made[key] = twin_run(bundle, robot, preset_file(folder, planted), 3, ASKED, seconds=6.0,
                                 crooked_rad=crooked, name=f"{name} {crooked_rad:g}")  # fmt: skip
        return made[key]

    return run


def _told(runs, robot, bundle, **more):
    return symptoms(runs, robot, bundle=bundle, task=TASK, **more)


def test_a_clean_twin_has_no_symptom(runs, robot, bundle):
    table = _told([runs("clean")], robot, bundle)
    assert [one.name for one in table.symptoms] == []
    assert {"jerky", "slips when turning", "overheats"} <= {one.name for one in table.looked if one.value is not None}


@pytest.mark.parametrize("name", [name for name in PLANTED if name != "clean"])
def test_the_planted_symptom_is_the_first(runs, robot, bundle, name):
    table = _told([runs(name)], robot, bundle)
    first = table.symptoms[0]
    assert first.name == name
    assert first.changes
    assert (first.value < first.bound) == first.below
    assert list(first.runs) == [f"{name} 0"]


def test_runs_that_differ_more_than_those_of_one_robot_are_told(runs, robot, bundle):
    """The same command on the floor, on a wet floor, and put down otherwise."""
    alike = [runs("clean"), runs("clean", 0.04), runs("clean", -0.04)]
    assert "differs each time" not in _told(alike, robot, bundle)
    unlike = [runs("clean"), runs("slips when turning"), runs("clean", 0.04)]
    table = _told(unlike, robot, bundle)
    assert table.symptoms[0].name == "differs each time"
    assert len(table.symptoms[0].runs) == 3


def test_the_task_that_is_written_mends_what_was_seen_and_is_trained(runs, robot, bundle, tmp_path):
    out = tmp_path / "symptoms"
    table = _told([runs("slips when turning")], robot, bundle, out=out)
    assert read_table(out) == table
    assert table.command == f"trueup train {table.task_file} --start RUN"
    before, mended = load_task(TASK), load_task(table.task_file)
    assert mended.randomize["contact_friction"].low < before.randomize["contact_friction"].low
    alone = load_task(table.task_file.rpartition(":")[0] + f":{function_name(table.symptoms[0])}")
    assert alone.randomize["contact_friction"] == mended.randomize["contact_friction"]
    for name, draw in before.randomize.items():
        assert mended.randomize[name].low <= draw.low
        assert mended.randomize[name].high >= draw.high
    few = {"steps": 4000, "nenv": 64, "threads": 1, "film_minutes": 0.0}
    tu.train(TASK, out=tmp_path / "run", **few)
    done = tu.train(table.task_file, start=tmp_path / "run", out=tmp_path / "mended", **few)
    assert done.outcome.steps >= 4000
