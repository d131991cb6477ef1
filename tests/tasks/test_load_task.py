"""Tasks by name, from files and as objects, and what is said when there is none."""

from dataclasses import replace
from pathlib import Path

import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot, zoo_names
from trueup.tasks.build import EnvCfg, build, with_servo
from trueup.tasks.load import described_tasks, load_task, name_object, task_names
from trueup.tasks.task import Actions, Servo


def mine(name: str, **changes):
    return replace(load_task("pendulum-swingup"), name=name, **changes)


# --- by name ---
def test_a_misspelt_name_is_told_with_the_nearest_one():
    with pytest.raises(TrueupError, match=r"no task 'go2-velocty' \(did you mean 'go2-velocity'\?\)"):
        load_task("go2-velocty")


def test_a_name_like_no_other_is_told_with_all_and_how_to_bring_ones_own():
    with pytest.raises(TrueupError, match=r"pendulum-swingup.*FILE\.py:FUNCTION"):
        load_task("xyzzy")


def test_built_in_tasks_are_listed_in_order_with_the_first_line_of_what_they_are():
    listed = described_tasks()
    assert [task.name for task in listed] == sorted(task_names()) == list(task_names())
    assert all(task.what and "\n" not in task.what for task in listed)
    walks = {name for name in task_names() if name.startswith("go2-velocity")}  # g1's terms name joints of its own
    assert {task.name for task in listed if task.scalable} == walks
    assert {task.name: task.robot for task in listed}["so101-push"] == "so101"


# --- another robot ---
def test_a_robot_with_the_same_joints_takes_the_place_of_the_tasks_own(tmp_path: Path):
    for file in ("model.xml", "spec.toml"):
        (tmp_path / file).write_bytes((load_robot("go2").model_path.parent / file).read_bytes())
    task = load_task("go2-velocity", str(tmp_path))
    assert task.robot == str(tmp_path)
    assert replace(task, robot="go2") == load_task("go2-velocity")


def test_a_robot_that_lacks_a_joint_is_refused_by_the_joints_name():
    first = load_robot("go2").spec.joint_names[0]
    lack = f"'go2-velocity' is written for 'go2'.*'z1' lacks floating base, feet, joint '{first}' and 11 more"
    with pytest.raises(TrueupError, match=f"{lack}: write a task of its own"):
        load_task("go2-velocity", "z1")
    with pytest.raises(TrueupError, match="'g1' lacks .*: `trueup task init g1 --like go2-velocity` writes one"):
        load_task("go2-velocity", "g1")
    with pytest.raises(TrueupError, match="'so101' lacks joint 'joint1' and 6 more: write a task of its own"):
        load_task("z1-reach", "so101")


@pytest.mark.parametrize("robot", zoo_names())
@pytest.mark.parametrize("name", task_names())
def test_every_task_on_every_robot_is_built_or_refused_in_one_line(name, robot):
    own = load_task(name).robot
    if robot == own:
        assert load_task(name, robot).robot == own
        return
    with pytest.raises(TrueupError, match="is written for") as refused:
        load_task(name, robot)
    assert "\n" not in str(refused.value)
    try:  # as a Task object changed in Python, it is built or refused too
        build(replace(load_task(name), robot=robot), EnvCfg(nenv=1, threads=1))
    except TrueupError as error:
        assert str(error)


def test_joints_in_another_order_are_refused(tmp_path: Path):
    folder = load_robot("go2").model_path.parent
    (tmp_path / "model.xml").write_bytes((folder / "model.xml").read_bytes())
    text = (folder / "spec.toml").read_text()
    swapped = text.replace("FL_hip_joint", "?").replace("FR_hip_joint", "FL_hip_joint").replace("?", "FR_hip_joint")
    (tmp_path / "spec.toml").write_text(swapped)
    with pytest.raises(TrueupError, match="has its joints in another order"):
        load_task("go2-velocity", str(tmp_path))


# --- from a file ---
def test_a_file_that_does_not_exist_is_named(tmp_path: Path):
    with pytest.raises(TrueupError, match=r"no such file") as caught:
        load_task(f"{tmp_path}/none.py:task")
    assert "none.py" in str(caught.value)


def test_a_function_that_a_file_does_not_have_is_told_with_the_nearest_one(tmp_path: Path):
    (tmp_path / "tasks.py").write_text("def swing():\n    return None\n")
    with pytest.raises(TrueupError, match="no function 'swimg'.*swing"):
        load_task(f"{tmp_path}/tasks.py:swimg")


@pytest.mark.parametrize("text", ["import nothing_of_this_name\n", "def task(:\n", "raise SystemExit(3)\n"])
def test_a_file_that_cannot_be_run_is_one_error(tmp_path: Path, text: str):
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(TrueupError, match="cannot be loaded"):
        load_task(f"{tmp_path}/broken.py:task")


def test_a_function_that_returns_no_task_is_told_what_it_returned(tmp_path: Path):
    (tmp_path / "tasks.py").write_text("def task():\n    return {'name': 'go2'}\n")
    with pytest.raises(TrueupError, match="must return a trueup.tasks.task.Task, found dict"):
        load_task(f"{tmp_path}/tasks.py:task")


# --- objects ---
def test_a_built_in_task_goes_by_its_own_name():
    assert name_object(load_task("pendulum-swingup")) == "pendulum-swingup"


def test_a_changed_built_in_task_does_not_pass_for_the_built_in_one():
    changed = mine("pendulum-swingup", score="joint_speed")
    name = name_object(changed)
    assert name.startswith("object:pendulum-swingup")
    assert load_task(name) is changed


def test_two_objects_of_one_name_are_told_apart_and_the_same_one_keeps_its_name():
    one, other = mine("twins"), mine("twins", score="joint_speed")
    names = [name_object(task) for task in (one, other, one)]
    assert names == ["object:twins", "object:twins#2", "object:twins"]
    assert load_task(names[1]).score == "joint_speed"


def test_an_object_of_another_process_is_asked_for_again():
    with pytest.raises(TrueupError, match="'object:gone' is a Task object of another process.*resume=True"):
        load_task("object:gone")


# --- what does not fit the robot ---
def test_a_servo_sets_the_gains_that_it_names_and_leaves_the_others():
    robot = load_robot("z1")
    made = with_servo(robot, Servo(kp=5.0, torque=tuple(range(1, 8)))).spec
    assert set(made.kp) == {5.0}
    assert tuple(made.torque_limit) == tuple(range(1, 8))
    assert tuple(made.kd) == tuple(robot.spec.kd)


def test_gains_for_another_number_of_joints_are_refused():
    with pytest.raises(TrueupError, match="servo.kd: 2 numbers for 7 joints"):
        with_servo(load_robot("z1"), Servo(kd=(1.0, 2.0)))


def test_scales_for_another_number_of_joints_are_refused():
    with pytest.raises(TrueupError, match="'pendulum-swingup': 2 action scales for 1 joints"):
        build(replace(load_task("pendulum-swingup"), actions=Actions(scale=(0.1, 0.2))), EnvCfg(nenv=1, threads=1))


def test_a_joint_to_be_moved_that_the_robot_lacks_is_told_with_those_it_has():
    robot = load_robot("pendulum").spec
    with pytest.raises(TrueupError, match=f"moves joint 'elbow'.*{robot.joint_names[0]}.*actions.controlled_joints"):
        build(
            replace(load_task("pendulum-swingup"), actions=Actions(controlled_joints=("elbow",))),
            EnvCfg(nenv=1, threads=1),
        )
