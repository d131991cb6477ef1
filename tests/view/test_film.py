"""Films: right length and size, whole or absent, the robot in view, physics untouched by the costume."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot, zoo_names
from trueup.robot.model import ModelCfg, build_spec, compile_spec, default_qpos, joint_index
from trueup.view.camera import CameraCfg, MotionFrames, TrackingCamera
from trueup.view.draw import Painter, backends
from trueup.view.film import dress, film, find_ffmpeg


def dressed(name: str) -> tuple[mujoco.MjModel, np.ndarray]:
    robot = load_robot(name)
    spec = build_spec(robot, ModelCfg(collisions="light", visual=True))
    dress(spec)
    model = compile_spec(spec, robot)
    return model, default_qpos(model, robot)


def picture(model: mujoco.MjModel, qpos: np.ndarray, cfg: CameraCfg | None = None) -> np.ndarray:
    cfg = cfg or CameraCfg()
    with Painter(model, 160, 120, azimuth=cfg.azimuth) as painter:
        motion = MotionFrames(painter.model, qpos[None], 30.0, 30.0)
        view = TrackingCamera(motion, cfg, aspect=4 / 3, fps=30.0)
        return painter.paint(motion.place(0), view.at(0)).copy()


@pytest.fixture(scope="module")
def pendulum() -> tuple[mujoco.MjModel, np.ndarray]:
    return dressed("pendulum")


@pytest.fixture(scope="module")
def go2() -> tuple[mujoco.MjModel, np.ndarray]:
    return dressed("go2")


def swing(model: mujoco.MjModel, qpos: np.ndarray, samples: int) -> np.ndarray:
    motion = np.tile(qpos, (samples, 1))
    motion[:, 0] = np.linspace(-1.0, 1.0, samples)
    return motion


def inspect_film(path: Path) -> tuple[str, float, int]:
    """Return what a reader says of the film: its stream, its seconds, its number of frames."""
    result = subprocess.run(
        [find_ffmpeg(), "-hide_banner", "-i", str(path), "-f", "null", "-"], capture_output=True, text=True, check=True
    )
    stream = next(line for line in result.stderr.splitlines() if "Video:" in line)
    hours, minutes, seconds = re.search(r"Duration: (\d+):(\d+):([\d.]+)", result.stderr).groups()
    frames = re.findall(r"frame=\s*(\d+)", result.stderr)[-1]
    return stream, 3600 * int(hours) + 60 * int(minutes) + float(seconds), int(frames)


def test_film_lasts_as_long_as_the_motion_and_has_even_sides(pendulum, tmp_path):
    model, qpos = pendulum
    told: list[float] = []
    path = film(
        model,
        swing(model, qpos, 50),
        tmp_path / "new" / "swing.mp4",
        sample_hz=50.0,
        fps=20.0,
        width=63,
        height=47,
        progress=told.append,
    )
    stream, seconds, frames = inspect_film(path)
    assert "h264" in stream
    assert "yuv420p" in stream
    assert "64x48" in stream
    assert seconds == pytest.approx(1.0, abs=0.011)
    assert frames == 20
    assert told == pytest.approx(np.arange(1, 21) / 20)
    # faststart: the index stands before the pictures, so that a page can play it at once
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")
    assert os.listdir(path.parent) == ["swing.mp4"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_gif_is_an_endless_gif(pendulum, tmp_path):
    model, qpos = pendulum
    path = film(model, swing(model, qpos, 10), tmp_path / "swing.gif", sample_hz=20.0, fps=20.0, width=64, height=48)
    data = path.read_bytes()
    assert data[:6] == b"GIF89a"
    assert b"NETSCAPE2.0\x03\x01\x00\x00" in data
    assert inspect_film(path)[2] == 10


def test_unknown_suffix_is_refused_with_the_known_ones(pendulum, tmp_path):
    model, qpos = pendulum
    with pytest.raises(TrueupError, match=r"swing\.avi.*'\.avi'.*\.mp4, \.gif"):
        film(model, swing(model, qpos, 2), tmp_path / "swing.avi", sample_hz=50.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q: q[:, :0], r"shape \(T, 1\)"),
        (lambda q: q[:0], r"T > 0"),
        (lambda q: np.where(np.arange(len(q))[:, None] == 3, np.nan, q), r"sample 3 \(0\.300 s\)"),
    ],
)
def test_motion_that_cannot_be_drawn_is_refused(pendulum, tmp_path, change, message):
    model, qpos = pendulum
    with pytest.raises(TrueupError, match=message):
        film(model, change(swing(model, qpos, 5)), tmp_path / "swing.mp4", sample_hz=10.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rate", [{"fps": 0.0}, {"sample_hz": float("nan")}, {"fps": float("inf")}])
def test_impossible_rates_are_refused(pendulum, tmp_path, rate):
    model, qpos = pendulum
    with pytest.raises(TrueupError, match=next(iter(rate))):
        film(model, swing(model, qpos, 2), tmp_path / "swing.mp4", **({"sample_hz": 10.0} | rate))


def test_failure_in_the_middle_leaves_the_old_film_and_no_part(pendulum, tmp_path):
    model, qpos = pendulum
    path = tmp_path / "swing.mp4"
    path.write_bytes(b"old")

    def stop(fraction: float) -> None:
        if fraction > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        film(model, swing(model, qpos, 20), path, sample_hz=30.0, width=64, height=48, progress=stop)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["swing.mp4"]


def test_ffmpeg_that_dies_is_reported_in_one_line(pendulum, tmp_path, monkeypatch):
    fake = tmp_path / "ffmpeg"
    fake.write_text("#!/bin/sh\necho 'No space left on device' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr("trueup.view.film.find_ffmpeg", lambda: str(fake))
    model, qpos = pendulum
    with pytest.raises(TrueupError, match=r"swing\.mp4: ffmpeg could not write.*No space left"):
        film(model, swing(model, qpos, 60), tmp_path / "swing.mp4", sample_hz=30.0, width=320, height=240)
    assert os.listdir(tmp_path) == ["ffmpeg"]


@pytest.mark.medium
def test_ctrl_c_in_a_real_process_leaves_nothing(tmp_path):
    script = textwrap.dedent(
        """
        import sys, numpy as np
        from test_film import dressed
        from trueup.view.film import film
        model, qpos = dressed("pendulum")
        film(model, np.tile(qpos, (30000, 1)), sys.argv[1], sample_hz=30.0, width=64, height=48,
             progress=lambda _: print("frame", flush=True))
        """
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "long.mp4")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"frame\n"
    assert len(os.listdir(tmp_path)) == 1
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in complaint
    assert os.listdir(tmp_path) == []


def test_missing_opengl_says_what_to_install(pendulum, monkeypatch):
    model, _ = pendulum
    monkeypatch.setattr("trueup.view.draw.backends", lambda: ("no_such_backend",))
    with pytest.raises(TrueupError, match=r"no_such_backend: ModuleNotFoundError.*apt-get install libegl1"):
        Painter(model)


def test_a_users_choice_of_opengl_overrules(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "OSMesa")
    assert backends() == ("osmesa",)
    monkeypatch.setenv("MUJOCO_GL", "off")
    with pytest.raises(TrueupError, match="MUJOCO_GL=off"):
        backends()


@pytest.mark.skipif(sys.platform != "linux", reason="EGL is Linux")
def test_egl_comes_first_without_a_screen(monkeypatch):
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert backends()[0] == "egl"


def test_film_leaves_the_callers_model_alone(pendulum, tmp_path):
    model, qpos = pendulum
    before = (model.vis.global_.offwidth, model.vis.quality.offsamples, model.light_dir0.copy())
    film(model, swing(model, qpos, 3), tmp_path / "swing.mp4", sample_hz=30.0, width=1000, height=48)
    assert (model.vis.global_.offwidth, model.vis.quality.offsamples) == before[:2]
    assert np.array_equal(model.light_dir0, before[2])


@pytest.mark.parametrize("name", zoo_names())
def test_dressing_changes_no_physics(name):
    robot = load_robot(name)
    plain = compile_spec(build_spec(robot, ModelCfg(collisions="light")), robot)
    shown, _ = dressed(name)
    assert shown.nq == plain.nq
    assert shown.body_mass == pytest.approx(plain.body_mass)
    assert shown.body_inertia == pytest.approx(plain.body_inertia)
    qpos = default_qpos(plain, robot)
    ends = []
    for model in (plain, shown):
        data = mujoco.MjData(model)
        data.qpos[:] = qpos
        mujoco.mj_step(model, data, 50)
        ends.append(data.qpos.copy())
    assert ends[1] == pytest.approx(ends[0], abs=1e-12)


@pytest.mark.parametrize("name", zoo_names())
def test_every_robot_is_seen_whole_and_large(name):
    """The robot's own pixels (against the same scene without it) fill the picture but touch no edge."""
    model, qpos = dressed(name)
    shown = picture(model, qpos).astype(int)
    bare = mujoco.MjModel.__copy__(model)
    robot = bare.geom_bodyid > 0
    bare.geom_rgba[robot, 3] = 0.0
    empty = picture(bare, qpos).astype(int)
    rows, columns = np.nonzero(np.abs(shown - empty).sum(axis=2) > 60)
    body = rows < 118  # a shadow may leave the picture below
    assert np.ptp(rows) > 0.4 * 120
    assert columns[body].min() >= 2
    assert columns[body].max() <= 157
    assert rows.min() >= 2


def test_camera_follows_a_walking_robot_without_jerks(go2):
    model, qpos = go2
    walk = np.tile(qpos, (200, 1))
    walk[:, 0] = np.linspace(0.0, 4.0, 200) + 0.05 * np.sign(np.sin(np.arange(200)))
    motion = MotionFrames(model, walk, 50.0, 30.0)
    view = TrackingCamera(motion, CameraCfg(), aspect=4 / 3, fps=30.0)
    looks = np.array([view.at(k).lookat.copy() for k in range(motion.frames)])
    base = np.array([motion.place(k).xpos[1].copy() for k in range(motion.frames)])
    middle = slice(20, -20)
    offset = looks[middle, 0] - base[middle, 0]
    assert np.ptp(offset) < 0.15  # metres: stays with the robot
    jerk_base, jerk_look = (np.abs(np.diff(x[middle, 0], 2)).max() for x in (base, looks))
    assert jerk_look < 0.15 * jerk_base


def test_positions_between_samples_follow_the_quaternion(go2):
    """Half-way between two headings 3 rad apart the body has the middle one, and is not shrunk."""
    model, qpos = go2
    turned = np.stack([qpos, qpos])
    turned[1, 3:7] = [np.cos(1.5), 0, 0, np.sin(1.5)]  # 3 rad about z
    turned[1, 0] = 1.0
    data = MotionFrames(model, turned, 1.0, 2.0).place(1)
    assert data.qpos[3:7] == pytest.approx([np.cos(0.75), 0, 0, np.sin(0.75)])
    assert data.qpos[0] == pytest.approx(0.5)


def test_a_moved_joint_changes_the_picture(go2):
    model, qpos = go2
    moved = qpos.copy()
    moved[joint_index(model, load_robot("go2")).qpos[1]] += 0.8
    fixed = CameraCfg(distance=1.3)
    same = np.abs(picture(model, qpos, fixed).astype(int) - picture(model, qpos, fixed).astype(int))
    other = np.abs(picture(model, qpos, fixed).astype(int) - picture(model, moved, fixed).astype(int))
    assert same.max() == 0
    assert (other.sum(axis=2) > 60).sum() > 50


@pytest.mark.parametrize("azimuth", [0.0, 90.0, 200.0])
def test_the_light_comes_from_behind_the_camera(go2, azimuth):
    """From ahead of it, the software renderer speckles the floor beyond the shadow map."""
    with Painter(go2[0], 64, 48, azimuth=azimuth) as painter:
        sun = painter.model.light("trueup_sun").dir0
    ahead = np.array([np.cos(np.radians(azimuth)), np.sin(np.radians(azimuth))])
    assert sun[:2] @ ahead > 0.1
    assert sun[2] < -0.9
