"""What a user mistypes is answered in one line that says what to do, before anything is tried."""

import subprocess
import sys

import pytest
from made_deploys import standing_bundle

from trueup.cli import main


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return standing_bundle(tmp_path_factory.mktemp("typos") / "stand.bundle").path


def answer(capsys, *words):
    """The one line of a refusal."""
    with pytest.raises(SystemExit) as end:
        main(["deploy", *map(str, words)])
    assert end.value.code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        ("unitre:eth0", "no driver 'unitre:eth0' (did you mean 'unitree:'?)"),
        ("unitree", "no driver 'unitree' (did you mean 'unitree:'?)"),
        ("usb:0", "no driver 'usb:0'; known are twin:PRESET"),
        ("twin:mild?sed=3", "a twin has no option 'sed' (did you mean 'seed'?)"),
        ("twin@here", "the address of a twin is HOST:PORT, found 'here'"),
    ],
)
def test_a_driver_that_cannot_be_is_named_before_certificate_and_ladder(bundle, capsys, driver, said):
    assert said in answer(capsys, bundle, "--driver", driver)


def test_a_bundle_that_is_not_there_and_a_run_in_its_place(tmp_path, capsys):
    assert "no bundle here: no such folder" in answer(capsys, tmp_path / "walk.bundle", "--rung", "replay")
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    assert f"`trueup export {tmp_path / 'run'} --out" in answer(capsys, tmp_path / "run", "--rung", "replay")


def test_without_certificate_the_answer_says_how_to_make_one(bundle, capsys):
    said = answer(capsys, bundle, "--driver", "twin:mild?base=free")
    assert "has no certificate; make one with `trueup verify" in said
    assert "--uncertified starts without one" in said


@pytest.mark.parametrize(
    ("driver", "package", "extra"),
    [("unitree:lo", "cyclonedds", "trueup[unitree]"), ("ros2:lo", "cyclonedds", "trueup[ros]"),
     ("feetech:/dev/null", "serial", "trueup[serial]")],
)  # fmt: skip
def test_a_driver_whose_package_is_not_installed_says_what_to_install(tmp_path, driver, package, extra):
    robot = "so101" if driver.startswith("feetech") else "go2"
    bundle = standing_bundle(tmp_path / "stand.bundle", robot)
    code = (
        f"import sys; sys.modules[{package!r}] = None\nfrom trueup.cli import main\n"
        f"main(['deploy', {str(bundle.path)!r}, '--rung', 'shadow', '--driver', {driver!r}])"
    )
    (tmp_path / "replay").mkdir()
    replay = [sys.executable, "-m", "trueup", "deploy", str(bundle.path), "--rung", "replay"]
    assert subprocess.run(replay, capture_output=True).returncode == 0
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert f"pip install '{extra}'" in found.stderr
