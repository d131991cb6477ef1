"""A stranger's model file: what is read, what is refused and where the error points."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import mujoco
import pytest
from test_fuzz_files import wedge_stl

from trueup.core.errors import TrueupError
from trueup.core.guarded import GuardLimits
from trueup.robot.foreign.compile_guard import CompileGuard, CompileJob
from trueup.robot.foreign.untrusted import read_model
from trueup.robot.load import ZOO, load_robot
from trueup.robot.model import open_model

ARM = '<body name="arm"><joint name="j"/><geom name="g" size="0.1"/></body>'


def mjcf(head: str = "", world: str = ARM, tail: str = "") -> str:
    return f"<mujoco>\n{head}\n<worldbody>\n{world}\n</worldbody>\n{tail}\n</mujoco>"


def urdf(base: str = "", arm: str = "", extra: str = "") -> str:
    inertia = '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
    return (
        f'<robot name="r">\n<link name="base"><inertial><mass value="5"/>{inertia}</inertial>{base}</link>\n'
        f'<link name="arm"><inertial><mass value="2"/>{inertia}</inertial>{arm}</link>\n'
        '<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>'
        f'<limit lower="-1" upper="1" effort="7" velocity="3"/></joint>\n{extra}</robot>'
    )


def mesh(kind: str, file: str) -> str:
    return f'<{kind}><geometry><mesh filename="{file}" scale="0.1 0.1 0.1"/></geometry></{kind}>'


def refuse(folder: Path, text: str, name: str = "model.xml") -> TrueupError:
    file = folder / name
    file.write_text(text)
    with pytest.raises(TrueupError) as caught:
        read_model(file)
    assert caught.value.file
    assert caught.value.place
    return caught.value


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("name", ["pendulum", "so101", "go2", "z1"])
def test_the_built_in_robots_read_alike_with_and_without_checks(name: str, check: bool) -> None:
    model = open_model(replace(load_robot(name), built_in=not check)).compile()
    plain = mujoco.MjModel.from_xml_path(str(ZOO / name / "model.xml"))
    assert (model.body_mass == plain.body_mass).all()
    assert (model.body_inertia == plain.body_inertia).all()
    assert (model.geom_size == plain.geom_size).all()
    assert model.nv == plain.nv


def test_a_broken_file_of_our_own_is_a_trueup_error(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text("<mujoco><geom/></mujoco>")
    with pytest.raises(TrueupError, match="MuJoCo cannot read"):
        open_model(replace(load_robot("pendulum"), model_path=tmp_path / "model.xml"))


@pytest.mark.parametrize("word", ["nan", "-inf", "INF", "1e999", "9" * 400, "infinity", "NaN(1)"])
def test_numbers_that_are_not_finite_are_refused_with_line_and_attribute(tmp_path: Path, word: str) -> None:
    error = refuse(tmp_path, mjcf(world=f'<body name="b">\n<geom name="g" pos="0 {word} 0" size="1"/></body>'))
    assert error.place == "line 5, <geom name='g'>"
    assert "pos=" in error.message
    assert "finite" in error.message


def test_a_joint_may_be_called_inf(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(mjcf(world=ARM.replace('"j"', '"inf"')))
    assert read_model(tmp_path / "model.xml").spec.joint("inf") is not None


def test_numbers_that_overflow_in_the_engine_are_refused(tmp_path: Path) -> None:
    assert "overflow" in refuse(tmp_path, mjcf(world=ARM.replace("0.1", "1e200"))).message


@pytest.mark.parametrize(
    "head",
    [
        '<asset><texture name="t" type="2d" builtin="flat" width="100000" height="2"/></asset>',
        '<asset><hfield name="h" nrow="99999" ncol="99999" size="1 1 1 1"/></asset>',
        '<size memory="3G"/>',
        '<size nuser_geom="2000000000"/>',
        '<size nkey="2000000000"/>',
        '<option iterations="2000000000"/>',
        '<worldbody><replicate count="100000"><geom size="1"/></replicate></worldbody>',
        '<worldbody><body><flexcomp name="f" type="grid" count="99 99 99" spacing="1 1 1"/></body></worldbody>',
        '<custom><numeric name="n" size="2000000000"/></custom>',
        '<sensor><jointpos joint="j" nsample="2000000000"/></sensor>',
    ],
)
def test_absurd_sizes_are_refused_before_the_engine_sees_them(tmp_path: Path, head: str) -> None:
    assert "above the limit" in refuse(tmp_path, mjcf(head)).message


@pytest.mark.parametrize(
    "head", ['<extension><plugin plugin="x"/></extension>', '<worldbody><plugin name="x"/></worldbody>']
)
def test_plugins_are_refused(tmp_path: Path, head: str) -> None:
    assert "loads code" in refuse(tmp_path, mjcf(head)).message


def test_entities_are_refused(tmp_path: Path) -> None:
    text = '<!DOCTYPE m [<!ENTITY a "b">]>\n' + mjcf(tail='<custom><text name="t" data="&a;"/></custom>')
    assert "DOCTYPE" in refuse(tmp_path, text).message


def test_bad_xml_names_line_and_column(tmp_path: Path) -> None:
    assert refuse(tmp_path, "<mujoco>\n<worldbody>\n</mujoco>").place == "line 3, column 2"


def test_the_engines_complaint_points_to_the_users_line(tmp_path: Path) -> None:
    world = '<body name="b"\n      pos="0 0 0">\n<!-- a comment\n over lines -->\n<geom type="ball"/></body>'
    error = refuse(tmp_path, mjcf(world=world))
    assert error.place is not None
    assert error.place.startswith("line 8, <geom")
    assert "invalid keyword: 'ball'" in error.message


def test_a_complaint_about_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text('<mujoco>\n<worldbody>\n<geom wrong="1"/></worldbody></mujoco>')
    error = refuse(tmp_path, mjcf('<include file="part.xml"/>'))
    assert error.file == str(tmp_path / "part.xml")
    assert error.place is not None
    assert error.place.startswith("line 3")


def test_includes_are_expanded_and_a_circle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text(f"<mujoco><worldbody>{ARM}</worldbody></mujoco>")
    (tmp_path / "model.xml").write_text(mjcf('<include file="part.xml"/>', world=""))
    assert read_model(tmp_path / "model.xml").spec.joint("j") is not None
    (tmp_path / "part.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    assert "includes itself" in refuse(tmp_path, mjcf('<include file="part.xml"/>')).message


@pytest.mark.parametrize(
    "head",
    [
        '<include file="../outside.xml"/>',
        '<include file="link.xml"/>',
        '<asset><mesh name="m" file="../outside.stl"/></asset>',
        '<asset><mesh name="m" file="link.stl"/></asset>',
        '<asset><mesh name="m" file="..\\outside.stl"/></asset>',
        '<compiler meshdir=".."/><asset><mesh name="m" file="outside.stl"/></asset>',
        '<compiler assetdir="/etc"/><asset><mesh name="m" file="hostname"/></asset>',
        '<asset><texture name="t" type="cube" fileright="../outside.png"/></asset>',
        '<asset><hfield name="h" file="../outside.png" size="1 1 1 1"/></asset>',
        '<asset><model name="m" file="../outside.xml"/></asset>',
        '<asset><mesh name="m" file="/etc/hostname"/></asset>',
    ],
)
def test_references_that_leave_the_folder_are_refused(tmp_path: Path, head: str) -> None:
    robot = tmp_path / "robot"
    robot.mkdir()
    for name in ("outside.xml", "outside.stl", "outside.png"):
        (tmp_path / name).write_text("<mujoco/>")
    (robot / "link.xml").symlink_to(tmp_path / "outside.xml")
    (robot / "link.stl").symlink_to(tmp_path / "outside.stl")
    message = refuse(robot, mjcf(head)).message
    assert "outside" in message or "absolute" in message


def test_the_error_says_how_to_widen_the_root_and_the_root_works(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes" / "wedge.stl").write_bytes(wedge_stl())
    error = refuse(tmp_path / "models", urdf(arm=mesh("collision", "../shapes/wedge.stl")), "r.urdf")
    assert "trueup robot init r.urdf --root FOLDER" in error.message
    assert read_model(tmp_path / "models" / "r.urdf", root=tmp_path).spec.compile().nmesh == 1


def ros_package(folder: Path, *, marked: bool) -> Path:
    """A folder as ROS lays it out, `package.xml` in it if `marked`; returns the place of the URDF."""
    for name in ("urdf", "meshes/visual"):
        (folder / name).mkdir(parents=True)
    (folder / "meshes" / "visual" / "wedge.stl").write_bytes(wedge_stl())
    (folder / "secret.stl").write_bytes(wedge_stl())
    if marked:
        (folder / "package.xml").write_text("<package/>")
    return folder / "urdf" / "r.urdf"


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("name", ["package://r_description/meshes/visual/wedge.stl", "../meshes/visual/wedge.stl"])
def test_a_urdf_in_ros_layout_finds_its_meshes_without_a_root(tmp_path: Path, name: str, marked: bool) -> None:
    file = ros_package(tmp_path / "r_description", marked=marked)
    file.write_text(urdf(arm=mesh("visual", name)))
    checked = read_model(file)
    assert checked.notes == ()
    assert checked.spec.compile().nmesh == 1
    assert load_robot(file).spec.joint_names == ("j",)


def test_ros_layout_opens_no_more_than_the_package(tmp_path: Path) -> None:
    bare = ros_package(tmp_path / "bare", marked=False)
    assert "lies outside" in refuse(bare.parent, urdf(arm=mesh("visual", "../secret.stl")), "r.urdf").message
    marked = ros_package(tmp_path / "marked", marked=True)
    (tmp_path / "outside.stl").write_bytes(wedge_stl())
    assert "lies outside" in refuse(marked.parent, urdf(arm=mesh("visual", "../../outside.stl")), "r.urdf").message
    linked = tmp_path / "linked"
    (linked / "urdf").mkdir(parents=True)
    (linked / "meshes").symlink_to(tmp_path)
    message = refuse(linked / "urdf", urdf(arm=mesh("visual", "../meshes/outside.stl")), "r.urdf").message
    assert "lies outside" in message
    asset = '<asset><mesh name="m" file="../meshes/visual/wedge.stl"/></asset>'  # an MJCF has no ROS layout
    assert "lies outside" in refuse(bare.parent, mjcf(asset)).message


@pytest.mark.parametrize(
    "name", ["package://r_description/meshes/wedge.stl", "package://any/r_description/meshes/wedge.stl"]
)
def test_package_paths_are_found_below_the_root(tmp_path: Path, name: str) -> None:
    package = tmp_path / "r_description"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    (package / "meshes" / "wedge.stl").write_bytes(wedge_stl())
    file = package / "urdf" / "r.urdf"
    file.write_text(urdf(arm=mesh("visual", name)))
    for root in (tmp_path, package):
        checked = read_model(file, root=root)
        assert checked.notes == ()
        assert checked.spec.compile().nmesh == 1


@pytest.mark.parametrize("content", [None, b"solid text\nfacet normal 0 0 1\n", b"\x00" * 200])
@pytest.mark.parametrize("kind", ["visual", "collision"])
def test_a_mesh_that_cannot_be_read_is_left_out_with_a_note(tmp_path: Path, kind: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "part.stl").write_bytes(content)
    (tmp_path / "r.urdf").write_text(urdf(arm=mesh(kind, "part.stl") + mesh("visual", "package://r/part.dae")))
    checked = read_model(tmp_path / "r.urdf")
    assert checked.spec.compile().nmesh == 0
    assert [note.code for note in checked.notes] == [f"{kind}-mesh-dropped", "visual-mesh-dropped"]
    assert "line 3, link 'arm'" in checked.notes[0].where


def test_a_missing_visual_mesh_of_an_mjcf_is_left_out_but_not_one_that_gives_mass(tmp_path: Path) -> None:
    asset = '<asset><mesh name="m" file="gone.obj"/></asset>'
    explicit = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    body = '<body name="b"><joint name="j"/>{}<geom type="mesh" mesh="m"/><geom size="0.1"/></body>'
    (tmp_path / "model.xml").write_text(mjcf(asset, world=body.format(explicit)))
    checked = read_model(tmp_path / "model.xml")
    assert checked.spec.compile().ngeom == 1
    assert checked.notes[0].code == "mesh-dropped"
    assert "takes its mass from mesh 'm'" in refuse(tmp_path, mjcf(asset, world=body.format(""))).message


def test_a_cube_texture_without_its_pictures_becomes_plain(tmp_path: Path) -> None:
    asset = '<asset><texture name="t" type="cube" fileright="a.png" fileup="b.png"/></asset>'
    (tmp_path / "model.xml").write_text(mjcf(asset))
    assert [note.code for note in read_model(tmp_path / "model.xml").notes] == ["texture-dropped"]


def test_the_root_link_of_a_urdf_keeps_its_mass(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(urdf())
    model = read_model(tmp_path / "r.urdf").spec.compile()
    assert model.body("base").mass == pytest.approx(5.0)
    assert model.body_mass.sum() == pytest.approx(7.0)


def test_urdf_limits_that_the_engine_drops_are_kept(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(urdf())
    assert read_model(tmp_path / "r.urdf").urdf_speeds == {"j": 3.0}


def test_gazebo_plugins_in_a_urdf_are_ignored_and_xacro_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(urdf(extra='<gazebo><plugin filename="x.so" gain="nan"/></gazebo>'))
    assert read_model(tmp_path / "r.urdf").spec.compile().nv == 1
    assert "xacro" in refuse(tmp_path, urdf(extra='<xacro:include filename="x"/>'), "r.urdf").message


def test_an_impossible_inertia_is_balanced_and_noted(tmp_path: Path) -> None:
    text = urdf().replace('ixx="0.1" iyy="0.1" izz="0.1"', 'ixx="0.1" iyy="0.1" izz="0.5"')
    (tmp_path / "r.urdf").write_text(text)
    assert [note.code for note in read_model(tmp_path / "r.urdf").notes] == ["repaired-balance"]


def test_an_inertia_of_zeros_becomes_a_ball_of_the_same_mass(tmp_path: Path) -> None:
    text = urdf().replace('ixx="0.1" iyy="0.1" izz="0.1"', 'ixx="0" iyy="0" izz="0"')
    (tmp_path / "r.urdf").write_text(text)
    checked = read_model(tmp_path / "r.urdf")
    arm = checked.spec.compile().body("arm")
    radius = (3 * 2.0 / (4 * 3.141592653589793 * 2000.0)) ** (1 / 3)
    assert arm.mass == pytest.approx(2.0)
    assert arm.inertia == pytest.approx([0.4 * 2.0 * radius**2] * 3, rel=1e-6)
    assert {note.code for note in checked.notes} == {"inertia-replaced"}


def test_nameless_parts_get_names_that_do_not_collide(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(
        mjcf(world='<body><joint/><geom size="1"/><geom name="world_body1_geom2" size="1"/><geom size="1"/></body>')
    )
    spec = read_model(tmp_path / "model.xml").spec
    assert [geom.name for geom in spec.geoms] == ["world_body1_geom1", "world_body1_geom2", "world_body1_geom3"]
    assert spec.joints[0].name == "world_body1_joint1"


def test_an_attached_model_is_read_with_its_meshes(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "wedge.stl").write_bytes(wedge_stl())
    asset = '<asset><mesh file="parts/wedge.stl"/></asset>'
    (tmp_path / "hand.xml").write_text(mjcf(asset, '<body name="h"><geom type="mesh" mesh="wedge"/></body>'))
    head = '<asset><model name="hand" file="hand.xml"/></asset>'
    world = ARM.replace("</body>", '<attach model="hand" body="h" prefix="left_"/></body>')
    (tmp_path / "model.xml").write_text(mjcf(head, world=world))
    model = read_model(tmp_path / "model.xml").spec.compile()
    assert model.body("left_h").id > 0
    assert model.nmesh == 1


@pytest.mark.parametrize(
    "world",
    [
        '<replicate count="9000" offset="1 0 0"><body><freejoint/><geom size="1"/></body></replicate>',
        '<replicate count="100">' * 3 + '<geom size="1"/>' + "</replicate>" * 3,
    ],
)
def test_a_model_that_never_finishes_is_cut_off(tmp_path: Path, world: str) -> None:
    message = refuse(tmp_path, mjcf(world=world + ARM)).message
    assert "did not finish" in message or "needs more than" in message  # on a fast machine memory runs out first


def test_a_model_that_asks_for_too_much_memory_is_refused(tmp_path: Path) -> None:
    textures = "".join(
        f'<texture name="t{k}" type="2d" builtin="checker" width="8000" height="8000"/>' for k in range(10)
    )
    message = refuse(tmp_path, mjcf(f"<asset>{textures}</asset>")).message
    assert "needs more than" in message or "did not finish" in message  # on a busy machine time runs out first


def test_size_of_xml_and_number_of_elements_are_bounded(tmp_path: Path) -> None:
    assert "bytes" in refuse(tmp_path, mjcf() + " " * 21_000_000).message
    assert "elements" in refuse(tmp_path, mjcf(tail="<a/>" * 60_000)).message
    assert "attributes" in refuse(tmp_path, "<mujoco " + " ".join(f'a{k}="1"' for k in range(400_000)) + "/>").message
    assert "deep" in refuse(tmp_path, mjcf(world="<body>" * 150 + "</body>" * 150)).message


def test_a_pipe_or_a_folder_in_place_of_a_mesh_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.stl")
    (tmp_path / "folder.stl").mkdir()
    for name in ("pipe.stl", "folder.stl"):
        text = mjcf(f'<asset><mesh name="m" file="{name}"/></asset>')
        (tmp_path / "model.xml").write_text(text)
        assert read_model(tmp_path / "model.xml").notes[0].code == "mesh-dropped"


def test_the_guard_tells_errors_apart_and_survives_the_death_of_its_server() -> None:
    guard = CompileGuard()
    usual = GuardLimits(cpu_s=1.5, memory_bytes=400 << 20)
    try:
        text = mjcf()
        assert guard.try_job(CompileJob(xml=text), usual).kind == "ok"
        large = mjcf('<asset><texture name="t" type="2d" builtin="checker" width="4000" height="4000"/></asset>')
        small = GuardLimits(cpu_s=1.5, memory_bytes=1 << 20)
        assert guard.try_job(CompileJob(xml=large), small).kind == "memory"  # 48 MB; a small model fits in what is free
        assert guard.try_job(CompileJob(xml=large), usual).kind == "ok"
        assert guard.try_job(CompileJob(xml="<mujoco><nonsense/></mujoco>"), usual).kind == "error"
        endless = mjcf(world='<replicate count="9000"><body><freejoint/><geom size="1"/></body></replicate>')
        short = GuardLimits(cpu_s=0.05, memory_bytes=400 << 20)
        assert guard.try_job(CompileJob(xml=endless), short).kind == "cpu_time"
        assert guard.process._server is not None
        guard.process._server.kill()
        guard.process._server.wait()
        assert guard.try_job(CompileJob(xml=text + "  "), usual).kind == "ok"
    finally:
        guard.process.close()


def test_the_guard_serves_several_threads(tmp_path: Path) -> None:
    files = []
    for number in range(6):
        files.append(tmp_path / f"model{number}.xml")
        files[-1].write_text(mjcf(tail=f'<custom><numeric name="n" data="{number}"/></custom>'))
    done: list[int] = []
    threads = [
        threading.Thread(target=lambda file=file: done.append(read_model(file).spec.compile().nv)) for file in files
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [1] * 6


def test_no_log_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = tmp_path / "robot"
    robot.mkdir()
    monkeypatch.chdir(tmp_path)
    refuse(robot, mjcf(world="<geom/>"))
    assert list(tmp_path.rglob("MUJOCO_LOG*")) == []
