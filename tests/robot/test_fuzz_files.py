"""Thousands of damaged and hostile robot files: each ends in success or in a TrueupError that names the file."""

from __future__ import annotations

import ctypes
import os
import random
import re
import resource
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from trueup.core.errors import TrueupError
from trueup.core.guarded import GuardedAnswer, GuardLimits
from trueup.robot.foreign.compile_guard import GUARD, CompileJob
from trueup.robot.load import ZOO, load_robot
from trueup.robot.model import compile_model

FILES = 1000
SEED = int(os.environ.get("TRUEUP_FUZZ_SEED", "0"))
SECONDS = 2.0  # of processor time
MEGABYTES = 512.0

VALUES = (
    "nan", "inf", "-INF", "1e999", "-1e999", "1e308", "-1e308", "1e-320", "0", "-1", "", " ", "999999999", "4294967296",
    "1 2 3 4 5 6 7 8 9", "true", "auto", "mesh", "../decoy.stl", "../decoy.xml", "/etc/hostname", "leak.stl",
    "leak.xml", "..\\decoy.stl", "file:///etc/hostname", "package://../decoy.stl", "robot/../../decoy.stl", "a" * 5000,
    "0x41", "٣", "%n%s",
)  # fmt: skip
INSERTED = (
    '<include file="../decoy.xml"/>', '<include file="model.xml"/>', '<include file="leak.xml"/>', '<include/>',
    '<asset><mesh file="../decoy.stl"/></asset>', '<asset><mesh file="leak.stl"/></asset>',
    '<asset><texture type="2d" file="../decoy.png"/></asset>', '<asset><model file="../decoy.xml"/></asset>',
    '<asset><texture type="2d" builtin="checker" width="100000" height="100000"/></asset>',
    '<asset><hfield name="h" nrow="60000" ncol="60000" size="1 1 1 1"/></asset>',
    '<asset><mesh builtin="sphere" params="30" name="ball"/></asset>',
    '<asset><skin file="../decoy.skn"/></asset>', '<extension><plugin plugin="mujoco.elasticity.cable"/></extension>',
    '<size memory="1E"/>', '<size nuser_geom="2000000000"/>', '<size nkey="2000000000"/>', '<compiler meshdir=".."/>',
    '<worldbody><replicate count="100000" euler="0 0 1"><geom size="1"/></replicate></worldbody>',
    '<worldbody><replicate count="9000"><body><freejoint/><geom size="1"/></body></replicate></worldbody>',
    '<worldbody><body><flexcomp name="f" type="grid" count="21 21 21" spacing=".1 .1 .1"/></body></worldbody>',
    '<custom><numeric name="n" size="2000000000"/></custom>', '<option iterations="2000000000"/>',
    '<link name="extra"><visual><geometry><mesh filename="../decoy.stl"/></geometry></visual></link>',
    '<link name="extra"><collision><geometry><mesh filename="leak.stl"/></geometry></collision></link>',
    '<mujoco><compiler meshdir="../" strippath="true"/></mujoco>', '<gazebo><plugin filename="x.so"/></gazebo>',
)  # fmt: skip
BOMB = '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)
)

MJCF = """<mujoco model="seed">
  <compiler angle="radian" meshdir="parts"/>
  <size nuser_geom="2"/>
  <option timestep="0.002" integrator="implicitfast"/>
  <default>
    <geom friction="1 0.005 0.0001"/>
    <default class="visual"><geom contype="0" conaffinity="0"/></default>
  </default>
  <asset>
    <mesh name="wedge" file="wedge.stl" scale="0.1 0.1 0.1"/>
    <texture name="grid" type="2d" builtin="checker" width="64" height="64"/>
    <material name="grid" texture="grid"/>
    <hfield name="hills" nrow="4" ncol="4" size="1 1 0.1 0.1"/>
  </asset>
  <include file="part.xml"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1" material="grid"/>
    <body name="trunk" pos="0 0 0.5">
      <freejoint/>
      <inertial pos="0 0 0" mass="4" diaginertia="0.1 0.1 0.1"/>
      <geom class="visual" type="mesh" mesh="wedge"/>
      <site name="imu"/>
      <replicate count="2" offset="0 0.3 0">
        <body name="leg" pos="0 -0.15 0">
          <joint name="hip" axis="0 1 0" range="-1 1" damping="0.1"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2"/>
          <body name="shin" pos="0 0 -0.2">
            <joint name="knee" axis="0 1 0" range="-2 -0.2" armature="0.01"/>
            <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2" user="1 2"/>
          </body>
        </body>
      </replicate>
    </body>
  </worldbody>
  <contact><exclude body1="trunk" body2="leg0"/></contact>
  <tendon><fixed name="t"><joint joint="hip0" coef="1"/><joint joint="hip1" coef="-1"/></fixed></tendon>
  <actuator>
    <position name="a" joint="hip0" kp="20" kv="1" forcerange="-10 10"/>
    <motor joint="knee0" ctrlrange="-5 5"/>
  </actuator>
  <sensor><gyro site="imu"/><actuatorfrc actuator="a"/></sensor>
  <keyframe><key name="home" qpos="0 0 .4 1 0 0 0 .4 -.8 .4 -.8"/></keyframe>
</mujoco>
"""
PART = "<mujoco><custom><numeric name='n' data='1 2'/></custom></mujoco>"


def urdf() -> str:
    """A quadruped of boxes and meshes with sensors, written out."""
    parts = ['<?xml version="1.0"?>\n<robot name="seed">', _link("trunk", 5.0), _link("imu", 0.0)]
    parts.append('<joint name="imu_fix" type="fixed"><parent link="trunk"/><child link="imu"/></joint>')
    for leg, (x, y) in {"FL": (0.2, 0.1), "FR": (0.2, -0.1), "RL": (-0.2, 0.1), "RR": (-0.2, -0.1)}.items():
        for above, name, limits in (("trunk", "hip", "-1 1"), (f"{leg}_hip", "knee", "-2 -0.5")):
            low, high = limits.split()
            place = f"{x} {y} 0" if name == "hip" else "0 0 -0.2"
            parts.append(_link(f"{leg}_{name}", 0.5))
            parts.append(
                f'<joint name="{leg}_{name}_joint" type="revolute"><origin xyz="{place}" rpy="0 0 0"/>\n'
                f'<parent link="{above}"/><child link="{leg}_{name}"/><axis xyz="0 1 0"/>\n'
                f'<limit lower="{low}" upper="{high}" effort="20" velocity="10"/></joint>'
            )
    parts.append('<gazebo><plugin name="x" filename="x.so"/></gazebo>\n</robot>')
    return "\n".join(parts)


def _link(name: str, mass: float) -> str:
    inertia = 'ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"'
    return (
        f'<link name="{name}">\n'
        f'<inertial><origin xyz="0 0 -0.1"/><mass value="{mass}"/><inertia {inertia}/></inertial>\n'
        f'<visual><geometry><mesh filename="package://seed/parts/wedge.stl" scale="0.1 0.1 0.1"/></geometry></visual>\n'
        f'<collision><origin xyz="0 0 -0.1"/><geometry><box size="0.04 0.04 0.2"/></geometry></collision>\n</link>'
    )


def wedge_stl() -> bytes:
    """A tetrahedron as binary STL."""
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *(x for k in face for x in corners[k]), 0) for face in faces)
    return bytes(80) + struct.pack("<I", len(faces)) + body


def mutate(text: str, rng: random.Random) -> bytes:
    """Damage a text in one to three of the ways below; half of the files only slightly, to get past the first walls."""
    data = text
    gentle = rng.random() < 0.5
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice(GENTLE if gentle else MUTATIONS)(data, rng)
    if gentle:
        return data.encode()
    raw = bytearray(data.encode("utf-8", "surrogateescape"))
    if rng.random() < 0.2 and raw:
        for _ in range(rng.randint(1, 12)):
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(raw)


def _swap_value(text: str, rng: random.Random) -> str:
    spots = [match.span(1) for match in re.finditer(r'="([^"]*)"|= *([^\n#]+)', text) if match.span(1)[0] >= 0]
    spots += [match.span(1) for match in re.finditer(r"^\w+ = (.+?)(?:  #.*)?$", text, re.MULTILINE)]
    if not spots:
        return text
    start, end = rng.choice(spots)
    return text[:start] + rng.choice(VALUES) + text[end:]


def _swap_number(text: str, rng: random.Random) -> str:
    spots = [match.span() for match in re.finditer(r"-?\d+\.?\d*(?:e-?\d+)?", text)]
    if not spots:
        return text
    start, end = rng.choice(spots)
    return text[:start] + rng.choice(VALUES) + text[end:]


def _other_number(text: str, rng: random.Random) -> str:
    spots = [match.span() for match in re.finditer(r"(?<![\w.])-?\d+\.?\d*(?:e-?\d+)?", text)]
    start, end = rng.choice(spots)
    return text[:start] + f"{rng.choice((1, -1)) * 10 ** rng.uniform(-4, 4):.3g}" + text[end:]


def _lines(change: Callable[[list[str], random.Random], None]) -> Callable[[str, random.Random], str]:
    def changed(text: str, rng: random.Random) -> str:
        lines = text.split("\n")
        change(lines, rng)
        return "\n".join(lines)

    return changed


def _delete_line(lines: list[str], rng: random.Random) -> None:
    del lines[rng.randrange(len(lines))]


def _double_line(lines: list[str], rng: random.Random) -> None:
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))


def _swap_lines(lines: list[str], rng: random.Random) -> None:
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def _insert_line(lines: list[str], rng: random.Random) -> None:
    lines.insert(rng.randint(1, len(lines)) if len(lines) > 1 else 0, rng.choice(INSERTED))


def _nest(text: str, rng: random.Random) -> str:
    tag = rng.choice(("body", "link", "geom", "worldbody", "default"))
    depth = rng.choice((3, 90, 3000, 60_000))
    at = rng.randrange(len(text) + 1)
    return text[:at] + f"<{tag}>" * depth + f"</{tag}>" * depth + text[at:]


def _cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _garbage(text: str, rng: random.Random) -> str:
    noise = rng.randbytes(rng.randint(0, 300)).decode("utf-8", "surrogateescape")
    return noise if rng.random() < 0.3 else text[: rng.randrange(len(text) + 1)] + noise


def _bomb(text: str, rng: random.Random) -> str:
    start = text.find("<")
    return BOMB + "]>\n" + text[max(start, 0) :].replace('"0', '"&j;', 1)


GENTLE = (_other_number, _other_number, _other_number, _lines(_delete_line), _lines(_double_line), _swap_value)
MUTATIONS = (
    _swap_value, _swap_value, _swap_value, _swap_value, _swap_number, _swap_number, _swap_number, _lines(_delete_line),
    _lines(_double_line), _lines(_swap_lines), _lines(_insert_line), _lines(_insert_line), _nest, _cut, _garbage, _bomb,
)  # fmt: skip


class FileWatch:
    """Counts openings and readings of files through inotify, by whatever process."""

    OPEN, ACCESS = 0x20, 0x1

    def __init__(self, files: list[Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.handle = libc.inotify_init1(os.O_NONBLOCK)
        assert self.handle >= 0
        for file in files:
            assert libc.inotify_add_watch(self.handle, os.fsencode(file), self.OPEN | self.ACCESS) >= 0

    def touched(self) -> bool:
        try:
            return bool(os.read(self.handle, 65536))
        except BlockingIOError:
            return False


@dataclass
class Outcome:
    """What a run of files cost, at worst."""

    loaded: int = 0
    refused: int = 0
    worst_s: float = 0.0
    worst_mb: float = 0.0


@pytest.fixture
def nest(tmp_path: Path) -> Path:
    """A robot folder with its parts, inside a folder with decoys that must stay shut."""
    robot = tmp_path / "robot"
    (robot / "parts").mkdir(parents=True)
    (robot / "parts" / "wedge.stl").write_bytes(wedge_stl())
    (robot / "part.xml").write_text(PART)
    for name in ("decoy.stl", "decoy.xml", "decoy.png", "decoy.skn", "decoy.toml"):
        (tmp_path / name).write_bytes(wedge_stl() if name.endswith("stl") else PART.encode())
    for kind in ("stl", "xml", "toml"):
        (robot / f"leak.{kind}").symlink_to(tmp_path / f"decoy.{kind}")
    return robot


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[GuardedAnswer]]:
    """Every answer of the guard, as it is given."""
    seen: list[GuardedAnswer] = []
    try_job = GUARD.try_job

    def recording(job: CompileJob, limits: GuardLimits) -> GuardedAnswer:
        seen.append(try_job(job, limits))
        return seen[-1]

    monkeypatch.setattr(GUARD, "try_job", recording)
    yield seen


def run(nest: Path, name: str, seeds: list[str], load: Callable[[Path], None], trials: list[GuardedAnswer]) -> Outcome:
    """Load FILES damaged copies of the seeds and hold each to the promise."""
    watch = FileWatch([path for path in nest.parent.iterdir() if path.is_file()])
    file = nest / name
    outcome = Outcome()
    file.write_text(seeds[0])
    load(file)  # starts the guard; the seed itself must pass
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(FILES):
        rng = random.Random(SEED + number)
        file.write_bytes(mutate(rng.choice(seeds), rng))
        start, before = time.thread_time(), len(trials)
        try:
            load(file)
            outcome.loaded += 1
        except TrueupError as error:
            outcome.refused += 1
            assert error.file, f"file {number}: no file in {error}"
        took = time.thread_time() - start + sum(answer.cpu_s for answer in trials[before:])
        outcome.worst_s = max(outcome.worst_s, took)
        assert took < SECONDS, f"file {number} took {took:.2f} s"
        assert not watch.touched(), f"file {number} opened a decoy"
    outcome.worst_mb = max((answer.peak_bytes / 2**20 for answer in trials), default=0.0)
    assert outcome.worst_mb < MEGABYTES
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss) / 1024 < MEGABYTES
    print(f"\n{name}: {outcome}")
    return outcome


def load_and_compile(file: Path) -> None:
    compile_model(load_robot(file))


def test_the_watch_sees_an_opened_decoy(nest: Path) -> None:
    watch = FileWatch([nest.parent / "decoy.xml"])
    assert not watch.touched()
    (nest / "leak.xml").read_text()
    assert watch.touched()


@pytest.mark.medium
def test_damaged_mjcf_never_does_harm(nest: Path, trials: list[GuardedAnswer]) -> None:
    seeds = [MJCF, MJCF, MJCF, *(path.read_text() for path in sorted(ZOO.glob("*/model.xml")))]
    outcome = run(nest, "model.xml", seeds, load_and_compile, trials)
    assert outcome.loaded > FILES // 10
    assert outcome.refused > FILES // 4


@pytest.mark.medium
def test_damaged_urdf_never_does_harm(nest: Path, trials: list[GuardedAnswer]) -> None:
    outcome = run(nest, "robot.urdf", [urdf()], load_and_compile, trials)
    assert outcome.loaded > FILES // 10
    assert outcome.refused > FILES // 4


@pytest.mark.medium
def test_damaged_specs_never_do_harm(nest: Path, trials: list[GuardedAnswer]) -> None:
    """Each spec stands beside go2's model; a sound one must also build."""
    (nest / "model.xml").write_text((ZOO / "go2" / "model.xml").read_text())
    whole = (ZOO / "go2" / "spec.toml").read_text()
    plain = "".join(line for line in whole.splitlines(True) if not line.startswith(("knee_speed", "delay_s")))
    seeds = [whole, plain]
    outcome = run(nest, "spec.toml", seeds, load_and_compile, trials)
    assert outcome.loaded > FILES // 10
    assert outcome.refused > FILES // 4
