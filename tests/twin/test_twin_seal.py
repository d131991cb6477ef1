"""Nobody reads the truth of a twin but who asks to have it revealed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from twin_bench import Twins

import trueup
from trueup.core.errors import TrueupError
from trueup.hardware.twin_cfg import TwinCfg
from trueup.robot.load import load_robot
from trueup.twin.firmware import Twin
from trueup.twin.truth.seal import reveal, seal, seal_folder, sealed_names

SOURCE = Path(trueup.__file__).parent
MAY_OPEN = ("trueup.twin",)


def module_name(file: Path) -> str:
    parts = ["trueup", *file.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(file: Path) -> set[str]:
    """Everything that a module imports, at the top or later, `from x import y` also as x.y."""
    names: set[str] = set()
    package = module_name(file).split(".") if file.name == "__init__.py" else module_name(file).split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return names


def strings(file: Path) -> set[str]:
    nodes = ast.walk(ast.parse(file.read_text()))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_only_the_twin_and_its_command_refer_to_the_seal() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 50
    for file in files:
        name = module_name(file)
        if name.startswith(MAY_OPEN):
            continue
        assert not any("trueup.twin.truth.seal" in other for other in imported(file)), f"{name} imports the seal"
        for text in strings(file):
            assert "twin.truth.seal" not in text, f"{name} names the seal"
            assert ".sealed" not in text, f"{name} names sealed files"


def test_no_stage_imports_any_of_the_twin() -> None:
    may = (*MAY_OPEN, "trueup.cli")
    for file in sorted(SOURCE.rglob("*.py")):
        if module_name(file) != "trueup" and not module_name(file).startswith(may):  # trueup itself: the Python face
            users = [other for other in imported(file) if other.startswith("trueup.twin")]
            assert not users, f"{module_name(file)} imports {users}: only a driver may know a twin, over the wire"


def test_a_sealed_truth_shows_nothing_and_opens_to_the_same() -> None:
    twin = Twin(load_robot("go2"), TwinCfg(preset="harmonic", seed=7))
    file = seal(twin.name, twin.truth)
    content = file.read_bytes()
    assert file.parent == seal_folder()
    for word in (b"armature", b"FL_hip_joint", b"friction", b"stiffness"):
        assert word not in content
    assert b"trueup twin reveal" in content  # says how to open it
    truth = reveal("go2-harmonic-7")
    assert truth["seed"] == 7
    joint = truth["joint"]
    assert isinstance(joint, dict)
    assert np.array_equal(joint["armature"], twin.truth.joint.armature)


def test_revealing_what_is_not_there_or_damaged_is_an_error() -> None:
    with pytest.raises(TrueupError, match="no twin"):
        reveal("go2-mild-1")
    twin = Twin(load_robot("pendulum"), TwinCfg(preset="mild", seed=1))
    file = seal(twin.name, twin.truth)
    with pytest.raises(TrueupError, match="did you mean 'pendulum-mild-1'"):
        reveal("pendulum-mild-2")
    with pytest.raises(TrueupError, match="no twin"):
        reveal("../../etc/passwd")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(TrueupError, match="damaged"):
        reveal("pendulum-mild-1")
    file.write_bytes(b"hello")
    with pytest.raises(TrueupError, match="not the sealed truth"):
        reveal("pendulum-mild-1")


@pytest.mark.medium
def test_a_started_twin_is_sealed_and_can_be_revealed(twins: Twins) -> None:
    driver = twins.start("harmonic", "so101", seed=3)
    assert driver.name == "so101-harmonic-3"
    assert sealed_names() == ("so101-harmonic-3",)
    expected = Twin(load_robot("so101"), TwinCfg(preset="harmonic", seed=3)).truth
    joint = reveal(driver.name)["joint"]
    assert isinstance(joint, dict)
    assert np.array_equal(joint["encoder_bias"], expected.joint.encoder_bias)


WATCHED = """
import sys
opened = []
def watch(event, arguments):
    if event in ("open", "os.open", "os.listdir", "os.scandir") and arguments:
        opened.append(str(arguments[0]))
sys.addaudithook(watch)
import numpy as np
from trueup.hardware.driver import Command
from trueup.hardware.drivers.open import open_driver
from trueup.robot.load import load_robot
robot = load_robot("pendulum")
driver = open_driver("twin:harmonic?lockstep=1&seed=2", robot)
driver.connect()
for k in range(50):
    state = driver.read()
    goal = np.array([np.sin(0.1 * k)])
    driver.write(Command(target_pos=goal, target_vel=0 * goal, kp=robot.spec.kp, kd=robot.spec.kd, torque=0 * goal))
driver.close()
print(state.time_s, any("trueup/twins" in name or ".sealed" in name for name in opened), len(opened) > 10)
print([name for name in sys.modules if name.startswith(("trueup.world", "trueup.twin", "mujoco"))])
"""


@pytest.mark.medium
def test_recording_through_the_driver_opens_no_sealed_file_and_loads_no_physics() -> None:
    result = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, timeout=60, check=True)
    first, second = result.stdout.splitlines()
    assert first == "0.245 False True"
    assert second == "[]"
    assert sealed_names() == ("pendulum-harmonic-2",)  # the twin itself had written it
