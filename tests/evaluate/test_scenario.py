"""Suites as files: what is shipped, what is refused and how, overrides, and numbers for robots of other sizes."""

import re
from pathlib import Path

import pytest
from made_figures import figures
from made_suites import STAND, suite_file

from trueup.core.errors import TrueupError
from trueup.evaluate.scenarios.scale import scaled
from trueup.evaluate.scenarios.suite import SHIPPED, read_suite
from trueup.tasks.similar.laws import Laws

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_suites_open_and_have_probes(name):
    suite = read_suite(name)
    assert len(suite.scenarios) >= 4
    assert len(suite.probes) >= 6 or name.endswith("_short")  # which is for rehearsals: no sensitivity
    assert all(one.title for one in suite.scenarios)


def test_walking_has_every_test_that_users_ask_for():
    suite = read_suite("locomotion")
    found = {one.name: one for one in suite.scenarios}
    assert found["forward"].command == {"forward": 1.0}
    assert found["turn"].command["turn"] == 0.5
    assert found["stairs_up"].terrain.size == found["stairs_down"].terrain.size == 0.15
    assert found["slope_up"].terrain.size == 15.0
    assert [found[name].push.newton for name in ("push_30", "push_50")] == [30.0, 50.0]
    assert found["slippery"].params["contact_friction"].bounds == (0.2, 0.2)
    assert found["delay"].params["delay"].bounds == (0.02, 0.02)
    assert {"rough", "gaps", "payload", "weak", "hot", "start", "carpet", "soft", "commands"} <= set(found)


def test_defaults_reach_every_scenario_and_tables_are_merged():
    found = {one.name: one for one in read_suite("locomotion").scenarios}
    assert found["forward"].start.joint_pos == 0.05
    assert found["carpet"].start.any_yaw
    assert found["carpet"].start.joint_pos == 0.05
    assert (found["rough"].success.error, found["rough"].success.distance) == (0.35, 0.6)


def test_the_example_of_the_documentation_is_a_suite(tmp_path):
    examples = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "evaluate.md").read_text(), re.DOTALL)
    assert examples
    for example in examples:
        assert read_suite(suite_file(tmp_path, example)).scenarios


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("torque_limit = {", "torqe_limit = {", "did you mean 'torque_limit'"),
        ('name = "stand"', 'name = "stand"\npusch = { newton = 3.0 }', "scenario 'stand': unknown key 'pusch'.*'push'"),
        ("scale = 0.05", "scale = 0.05, set = 1.0", "scenario 'limp'.*one of set, scale and add"),
        ("scale = 0.05", "scale = [2.0, 1.0]", "low <= high"),
        ("scale = 0.05", "scale = inf", "finite"),
        ("seconds = 1.0", "seconds = 1e6", "120"),
        ("seconds = 1.0", "seconds = 'long'", "float"),
        ("least = 0.5", "least = 1.0", "between 0 and 1"),
        ('name = "limp"', 'name = "stand"', "twice"),
        ('name = "limp"', 'name = "../limp"', "letters"),
        ('name = "stand"', 'name = "stand"\nterrain = { kind = "stair_up", size = 0.1 }', "stairs_up"),
        ("schema = 1", "schema = 7", "schema"),
        ("scale = [0.9, 0.8, 0.05, 0.04]", "", "'torque' needs one of"),
        ("[vary]", "[override.go2.stnd]\nseconds = 2.0\n[vary]", "did you mean 'stand'"),
        ("title =", "titel =", "titel"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path, before, after, message):
    file = suite_file(tmp_path, STAND.replace(before, after, 1))
    with pytest.raises(TrueupError, match=message) as error:
        read_suite(file)
    assert "suite.toml" in str(error.value)


def test_a_suite_that_is_not_there_names_the_shipped_ones():
    with pytest.raises(TrueupError, match="locomotion"):
        read_suite("walking.toml")


def test_overrides_hold_for_their_robot_or_task_only(tmp_path):
    more = "\n[override.g1.all]\nseconds = 3.0\n[override.go2-velocity.limp]\nleast = 0.6\nsuccess = { error = 0.4 }\n"
    file = suite_file(tmp_path, STAND + more)
    plain, other = read_suite(file), read_suite(file, ("g1", "g1-velocity"))
    own = read_suite(file, ("go2", "go2-velocity"))
    assert [one.seconds for one in plain.scenarios] == [1.0, 1.0]
    assert [one.seconds for one in other.scenarios] == [3.0, 3.0]
    assert [one.least for one in own.scenarios] == [0.5, 0.6]
    assert own.scenarios[1].success.error == 0.4


def test_some_scenarios_are_chosen_by_name(tmp_path):
    suite = read_suite(suite_file(tmp_path))
    assert [one.name for one in suite.only(("limp",)).scenarios] == ["limp"]
    assert suite.only(()) == suite
    with pytest.raises(TrueupError, match="did you mean 'limp'"):
        suite.only(("lim",))


def test_loads_and_forces_grow_with_the_mass_and_stairs_never_grow():
    suite, small = read_suite("locomotion"), figures(mass=10.0, leg=0.3)
    for mass, leg, step in ((20.0, 0.6, 0.15), (5.0, 0.15, 0.075)):
        grown = {one.name: one for one in scaled(suite, Laws(small, figures(mass=mass, leg=leg))).scenarios}
        assert grown["payload"].params["payload"].bounds == pytest.approx((3.0 * mass / 10.0,) * 2)
        assert grown["push_30"].push.newton == pytest.approx(30.0 * mass / 10.0)
        assert grown["stairs_up"].terrain.size == pytest.approx(step)
        assert grown["slope_up"].terrain.size == 15.0
        assert grown["forward"].command == {"forward": 1.0}
        assert grown["weak"].params == {one.name: one for one in suite.scenarios}["weak"].params


def test_speeds_follow_froude_where_the_suite_says_so():
    laws = Laws(figures(mass=10.0, leg=0.25), figures(mass=10.0, leg=1.0), "froude")
    grown = scaled(read_suite("locomotion"), laws)
    assert grown.scenarios[0].command["forward"] == pytest.approx(2.0)
