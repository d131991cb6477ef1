"""A robot folder made from a stranger's file: self-contained, readable, honest about its guesses, and it moves."""

from __future__ import annotations

import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest
from foreign_robots import MJCF, URDF, locate
from test_fuzz_files import MJCF as SEED
from test_fuzz_files import PART, wedge_stl
from test_untrusted import mesh, mjcf, urdf

from trueup.core.errors import TrueupError
from trueup.robot.drafts.init import init_robot
from trueup.robot.foreign.untrusted import read_model
from trueup.robot.inspection.inspect import inspect_robot
from trueup.robot.inspection.lints import marked_guesses
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg, compile_model, default_qpos
from trueup.robot.spec import read_spec


def seed(folder: Path) -> Path:
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "wedge.stl").write_bytes(wedge_stl())
    (folder / "part.xml").write_text(PART)
    (folder / "seed.xml").write_text(SEED)
    return folder / "seed.xml"


def simulate(robot: Robot, cfg: ModelCfg) -> None:
    model = compile_model(robot, cfg)
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    for _ in range(100):
        mujoco.mj_step(model, data)
    assert np.isfinite(data.qpos).all()
    assert data.time == pytest.approx(100 * model.opt.timestep)  # the engine resets the clock when it gives up


def test_the_folder_stands_alone_and_simulates(tmp_path: Path) -> None:
    source = seed(tmp_path / "source")
    before = read_model(source).spec.compile()
    out = init_robot(source, tmp_path / "out")
    shutil.rmtree(tmp_path / "source")
    robot = load_robot(out)
    after = compile_model(robot, ModelCfg(collisions="full", floor=False, visual=True))
    assert (after.body_mass == before.body_mass).all()
    assert (after.geom_size == before.geom_size).all()
    assert sorted(path.name for path in out.rglob("*") if path.is_file()) == ["model.xml", "spec.toml", "wedge.stl"]
    simulate(robot, ModelCfg())


def test_the_spec_owns_gains_and_pose(tmp_path: Path) -> None:
    out = init_robot(seed(tmp_path / "source"), tmp_path / "out")
    text = (out / "model.xml").read_text()
    assert "<actuator" not in text
    assert "<keyframe" not in text
    assert load_robot(out).spec.joints[0].kp == 20.0


def test_guesses_are_marked_and_found_again(tmp_path: Path) -> None:
    out = init_robot(seed(tmp_path / "source"), tmp_path / "out")
    text = (out / "spec.toml").read_text()
    assert "velocity = 10.0  # guessed: the file says nothing about speed" in text
    assert "velocity of hip0" in marked_guesses(text)
    assert "kp of hip0" not in marked_guesses(text)
    codes = {finding.code for finding in inspect_robot(load_robot(out)).findings}
    assert "no-velocity-limits" in codes
    (out / "spec.toml").write_text(text.replace("  # guessed: the file says nothing about speed", ""))
    codes = {finding.code for finding in inspect_robot(load_robot(out)).findings}
    assert "no-velocity-limits" not in codes


def test_shapes_that_only_show_do_not_slow_the_physics(tmp_path: Path) -> None:
    """A foot on a body without mass of its own is no reason to keep the visual shapes of all others."""
    leg = (
        '<body name="{n}" pos="{x} {y} 0"><inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>'
        '<joint name="{n}_hip" axis="0 1 0" range="-3 3"/><geom size=".1" contype="0" conaffinity="0"/>'
        '<body name="{n}_sole" pos="0 0 -.3"><geom name="{n}_foot" size=".02" mass="0"/></body></body>'
    )
    places = {"FL": (0.3, 0.1), "FR": (0.3, -0.1), "RL": (-0.3, 0.1), "RR": (-0.3, -0.1)}
    legs = "".join(leg.format(n=name, x=x, y=y) for name, (x, y) in places.items())
    trunk = '<inertial pos="0 0 0" mass="5" diaginertia=".1 .1 .1"/><geom name="belly" size=".05"/>'
    (tmp_path / "m.xml").write_text(mjcf("", f'<body name="b" pos="0 0 1"><freejoint/>{trunk}{legs}</body>'))
    robot = load_robot(init_robot(tmp_path / "m.xml", tmp_path / "out"))
    model = compile_model(robot, ModelCfg(floor=False))
    assert {model.geom(k).name for k in range(model.ngeom)} == {"belly", *robot.spec.feet}
    assert model.body_mass.sum() == pytest.approx(9.0)


def test_a_urdf_becomes_mjcf_with_all_its_mass(tmp_path: Path) -> None:
    (tmp_path / "wedge.stl").write_bytes(wedge_stl())
    (tmp_path / "r.urdf").write_text(urdf(arm=mesh("collision", "wedge.stl") + mesh("visual", "gone.dae")))
    out = init_robot(tmp_path / "r.urdf", tmp_path / "out")
    robot = load_robot(out)
    model = compile_model(robot)
    assert robot.model_path.name == "model.xml"
    assert model.body_mass.sum() == pytest.approx(7.0, rel=1e-5)
    assert model.nmesh == 1
    assert "visual-mesh-dropped, 1 times" in (out / "spec.toml").read_text()


def test_a_file_with_hostile_names_writes_a_spec_that_can_be_read(tmp_path: Path) -> None:
    name = "a&#10;schema = 2&#10;&quot;\\ #"
    (tmp_path / "model.xml").write_text(mjcf(world=f'<body name="b"><joint name="{name}"/><geom size="0.1"/></body>'))
    out = init_robot(tmp_path / "model.xml", tmp_path / "out")
    assert read_spec(out / "spec.toml").joint_names == ('a\nschema = 2\n"\\ #',)


def test_a_folder_with_files_is_left_alone_unless_forced(tmp_path: Path) -> None:
    source = seed(tmp_path / "source")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    with pytest.raises(TrueupError, match="--force"):
        init_robot(source, out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    init_robot(source, out, force=True)
    assert (out / "mine.txt").read_text() == "keep"
    with pytest.raises(TrueupError, match="not empty"):
        init_robot(source, out / "mine.txt", force=True)


def test_a_refused_model_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(mjcf('<include file="../x.xml"/>'))
    with pytest.raises(TrueupError):
        init_robot(tmp_path / "model.xml", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.medium
@pytest.mark.parametrize("name", [*MJCF, *URDF])
def test_foreign_robots_become_robots_of_ours(tmp_path: Path, name: str) -> None:
    path, root = locate(name)
    robot = load_robot(init_robot(path, tmp_path / name, root=root))
    simulate(robot, ModelCfg())
    simulate(robot, ModelCfg(collisions="full", floor=True, visual=True))
    assert inspect_robot(robot).verdict != "not usable"
