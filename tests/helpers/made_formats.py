"""A small sound file of every format that trueup reads, how to use it as a user would, and how to sign it again."""

from __future__ import annotations

import json
import pickle
import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from made_bundles import make_bundle, make_net, make_passport
from made_calibration import made_calibration
from made_deploys import HEADER, toy_state
from made_nets import made_net

from trueup.calibrate.actuator.folder import read_actuator
from trueup.core.arrays import sha256_of
from trueup.deploy.ladder.records import RungAnswer, RungRecord, read_record
from trueup.deploy.session.recording import RowWriter, state_columns
from trueup.evaluate.scenarios.suite import SHIPPED, read_suite
from trueup.evaluate.score import PolicyScore, read_score, write_score
from trueup.gap.result import GapResult
from trueup.gap.result import read as read_diagnosis
from trueup.gap.symptoms.finding import FILE as SYMPTOMS
from trueup.gap.symptoms.finding import Looked, SymptomTable, read_table, write_table
from trueup.hardware.drivers.servos.calibration import read_servo_map
from trueup.hardware.policy_rows import read_rows
from trueup.loop.run import opened
from trueup.models.actuator_file import save_actuator
from trueup.models.delta_net import DeltaNet, DeltaSpec, load_delta, save_delta
from trueup.motion.made.make import make_motion
from trueup.motion.motion import write_motion
from trueup.motion.readers.open import ReadCfg, open_motion, read_file
from trueup.policy.bundle.bundle import load_bundle
from trueup.policy.bundle.certificate import Certificate, GateCheck, read_certificate
from trueup.policy.bundle.manifest import MANIFEST, write_files
from trueup.policy.mlp import MlpPolicy, load_policy
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg
from trueup.tasks.load import load_task, make_env
from trueup.train.compare import differences, read_runs
from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.play.episode import Episode, load_episode
from trueup.train.play.play import open_run
from trueup.train.train import train
from trueup.twin.tap import TapFile, read_tap
from trueup.world.fitted.calibration import PARAMS_FILE, read_calibration, write_calibration
from trueup.world.fitted.refit import REFIT_FILE, RefitRequest, Suspect, read_refit

G1, SO101, PENDULUM = load_robot("g1"), load_robot("so101"), load_robot("pendulum")


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format: `make` writes sound files into a folder and names those to mutate; `use` reads and uses the folder.

    sign  makes hashes right again after a mutation, so that it gets past them
    """

    make: Callable[[Path], list[Path]]
    use: Callable[[Path], object]
    sign: Callable[[Path], None] | None = None


# --- motions ---
def _motion_npz(folder: Path) -> list[Path]:
    return [write_motion(make_motion("squat", G1).cut(0.0, 0.2), folder / "motion.npz")]


def _motion_csv(folder: Path) -> list[Path]:
    rows = np.tile([0, 0, 0.8, 0, 0, 0, 1, *G1.spec.default_pose], (8, 1)) + 0.01 * np.arange(8)[:, None]
    np.savetxt(folder / "walk_50hz.csv", rows, delimiter=",", fmt="%.4f")
    return [folder / "walk_50hz.csv"]


def _pickled() -> bytes:
    n, joints = 8, len(G1.spec.joint_names)
    walk = {
        "root_trans_offset": np.ones((n, 3), np.float32), "root_rot": np.tile([0, 0, 0, 1.0], (n, 1)),
        "dof": np.zeros((n, joints, 1), np.float32), "fps": 30,
    }  # fmt: skip
    return pickle.dumps({"walk": walk})


def _motion_pickle(folder: Path) -> list[Path]:
    (folder / "walk.pkl").write_bytes(_pickled())
    return [folder / "walk.pkl"]


def _motion_joblib(folder: Path) -> list[Path]:
    (folder / "walk.joblib").write_bytes(zlib.compress(_pickled()))
    return [folder / "walk.joblib"]


_BVH = """HIERARCHY
ROOT Hips
{
  OFFSET 0 90 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
  JOINT Leg
  {
    OFFSET 0 -80 10
    CHANNELS 3 Zrotation Yrotation Xrotation
    End Site
    {
      OFFSET 0 -10 0
    }
  }
}
MOTION
Frames: 4
Frame Time: 0.033333
0 90 0 0 0 0 1 2 3
0 90 1 0 0 0 2 2 3
0 90 2 0 0 0 3 2 3
0 90 3 0 0 0 4 2 3
"""


def _motion_bvh(folder: Path) -> list[Path]:
    (folder / "walk.bvh").write_text(_BVH)
    return [folder / "walk.bvh"]


def _motion_loco(folder: Path) -> list[Path]:
    names = np.array(["root", *G1.spec.joint_names])
    kinds = np.array([0] + [3] * G1.spec.njoint)
    qpos = np.tile([0, 0, 0.8, 1, 0, 0, 0, *G1.spec.default_pose], (8, 1))
    np.savez(folder / "loco.npz", qpos=qpos, joint_names=names, jnt_type=kinds, frequency=50.0, split_points=[0, 8])
    return [folder / "loco.npz"]


def _use_motion(folder: Path) -> object:
    (file,) = folder.iterdir()
    return read_file(file, G1, ReadCfg()) if file.suffix == ".bvh" else open_motion(file, G1)


# --- what fits and learned models are ---
def _calibration(folder: Path) -> list[Path]:
    write_calibration(made_calibration(PENDULUM, ("armature", "damping", "friction", "delay")), folder)
    return [folder / PARAMS_FILE]


def _use_calibration(folder: Path) -> object:
    read_calibration(folder)
    return make_env(load_task("pendulum-swingup"), EnvCfg(nenv=2, threads=1, params=str(folder))).reset()


def _rung(folder: Path) -> list[Path]:
    (folder / "uan").mkdir()
    save_actuator(made_net("pendulum"), folder / "uan")
    write_calibration(made_calibration(PENDULUM, ("armature",)), folder / "uan")
    return [folder / "uan" / name for name in ("actuator.json", "actuator.safetensors", PARAMS_FILE)]


def _delta(folder: Path) -> list[Path]:
    names = PENDULUM.spec.joint_names
    spec = DeltaSpec(
        robot="pendulum",
        joint_names=names,
        default_pose=(0.0,),
        corrected=(0,),
        base=False,
        rate_hz=50.0,
        limit_rad=0.1,
    )
    n = spec.ninput
    layers = (
        (np.ones((4, n), np.float32), np.zeros(4, np.float32)),
        (np.ones((1, 4), np.float32), np.zeros(1, np.float32)),
    )
    ones = np.ones(n, np.float32)
    net = DeltaNet(
        spec=spec, linear=np.ones((1, n), np.float32), layers=layers, mean=ones, std=ones, low=-ones, high=ones
    )
    save_delta(net, folder)
    return [folder / "delta.json", folder / "delta.safetensors"]


def _policy(folder: Path) -> list[Path]:
    net = make_net()
    MlpPolicy(make_passport(net).policy, net, 1).save(folder)
    return [folder / "policy.json", folder / "policy.safetensors"]


def _use_policy(folder: Path) -> object:
    return load_policy(folder).act(np.zeros((1, 36), np.float32))


# --- bundles, certificates, records ---
def _bundle(folder: Path) -> list[Path]:
    make_bundle(folder)
    return [folder / name for name in ("spec.json", "policy.onnx", "golden.npz")]


def _sign_bundle(folder: Path) -> None:
    files = {name: (folder / name).read_bytes() for name in ("spec.json", "policy.onnx", "golden.npz")}
    manifest = json.loads((folder / MANIFEST).read_text())
    write_files(folder, files, manifest["opset"], tuple(manifest["operators"]))


def _use_bundle(folder: Path) -> object:
    return load_bundle(folder).runner(1).act(np.zeros((1, 36), np.float32))


def _manifest(folder: Path) -> list[Path]:
    make_bundle(folder)
    return [folder / MANIFEST]


def _certificate(folder: Path) -> list[Path]:
    check = GateCheck(name="parity", state="pass", asked="at most 1e-5", found="3e-7", value=3e-7)
    made = Certificate(
        bundle="ab" * 32, name="walk", robot="go2", task="go2-velocity", trials=100, seed=0, engines=("mujoco",),
        inputs={}, checks=(check,),
    )  # fmt: skip
    return [_json(folder / "certificate.json", made.sealed())]


def _sealed(kind: type[Certificate] | type[RungRecord]) -> Callable[[Path], None]:
    """Gives what can still be read as `kind` the hash of its content."""

    def sign(folder: Path) -> None:
        (file,) = folder.iterdir()
        try:
            found = msgspec.json.decode(file.read_bytes(), type=kind)
            file.write_bytes(msgspec.json.encode(found.sealed()))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
            return

    return sign


def _record(folder: Path) -> list[Path]:
    judged = (RungAnswer(name="run", passed=True, asked="a", found="f"),)
    made = RungRecord(
        rung="shadow", bundle="b" * 64, name="walk.bundle", robot="go2", model_sha256="m" * 64, identity="i", below="",
        started="2026-01-01", seconds=10.0, judged=judged,
    )  # fmt: skip
    return [_json(folder / "shadow.json", made.sealed())]


def _json(path: Path, content: object) -> Path:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1))
    return path


# --- scenarios, scores, diagnoses ---
def _suites(folder: Path) -> list[Path]:
    for name, file in SHIPPED.items():
        (folder / f"{name}.toml").write_bytes(Path(file).read_bytes())
    return sorted(folder.iterdir())


def _each(read: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [read(file) for file in sorted(folder.iterdir())]


def _score(folder: Path) -> list[Path]:
    made = PolicyScore(
        policy="p", bundle_hash="", task="t", robot="r", engine="mujoco", seed=0, trials=100, suite="s", suite_hash="",
        error_label="", results=(),
    )  # fmt: skip
    write_score(made, folder)
    return [folder / "score.json"]


def _diagnosis(folder: Path) -> list[Path]:
    suspect = Suspect(name="delay", of=(), low=0.0, high=0.04, unit="s")
    asked = RefitRequest(
        robot="go2", base="fixed", params=("pace", "delay"), suspects=(suspect,), logs=("a.mcap",), hashes=("00",)
    )
    made = GapResult(
        robot="go2", base="fixed", logs=("a.mcap",), hashes=("00",), params=None, windows=10, seconds=20.0,
        nothing_wrong=False, causes=(), pairs=(), tried={"delay": 0.4}, horizons=(), distances={}, notes=(),
        refit=asked,
    )  # fmt: skip
    made.write(folder)
    return [folder / "result.json", folder / REFIT_FILE]


def _use_diagnosis(folder: Path) -> object:
    return read_diagnosis(folder), read_refit(folder)


def _symptoms(folder: Path) -> list[Path]:
    looked = Looked(name="slip", quantity="slip of feet", unit="m/s", value=0.1, bound=0.5, told=False)
    write_table(SymptomTable(robot="go2", runs=("a",), symptoms=(), looked=(looked,), reference=20), folder)
    return [folder / SYMPTOMS]


# --- recordings of runs ---
def _rows(folder: Path) -> list[Path]:
    writer = RowWriter(folder / "policy.rows", HEADER)
    for k in range(12):
        writer.add(tick=k, **state_columns(toy_state(k)))
    writer.close()
    return [folder / "policy.rows"]


def _use_rows(folder: Path) -> object:
    found = read_rows(folder / "policy.rows")
    return [found.state(k) for k in range(len(found))]


def _tap(folder: Path) -> list[Path]:
    tap = TapFile(folder / "tap", ("a", "b"))
    for k in range(10):
        tap.command(np.full((5, 2), float(k)))
        tap.period(0.01 * k, np.ones(2))
    tap.close()
    return [folder / "tap"]


def _episode(folder: Path) -> list[Path]:
    one = np.zeros((5, 1), np.float32)
    made = Episode(
        dt=0.02, names=("forward",), feet=("FL",), asked=one, measured=one, action=one, contact=np.ones((5, 1), bool)
    )
    return [made.save(folder / "episode.npz")]


def _run(folder: Path) -> list[Path]:
    cfg = RunCfg(task="pendulum-swingup", nenv=4, threads=1, learner=default_learner("pendulum-swingup"))
    train(cfg, folder, Budget(steps=200))
    (checkpoint,) = sorted((folder / "checkpoints").iterdir())[-1:]
    return [folder / "config.json", folder / "metrics.jsonl", *sorted(checkpoint.iterdir())]


def _sign_run(folder: Path) -> None:
    """Gives the newest checkpoint the hash of its arrays."""
    checkpoint = sorted((folder / "checkpoints").iterdir())[-1]
    try:
        manifest = json.loads((checkpoint / "manifest.json").read_text())
        manifest["sha256"]["arrays.safetensors"] = sha256_of([(checkpoint / "arrays.safetensors").read_bytes()])
        (checkpoint / "manifest.json").write_text(json.dumps(manifest))
    except (ValueError, KeyError, TypeError, RecursionError):
        return


def _use_run(folder: Path) -> object:
    env, policy = open_run(folder)
    policy(env.reset())
    shutil.copytree(folder, folder.with_name("other"), dirs_exist_ok=True)
    return differences(read_runs([folder, folder.with_name("other")]))


def _workspace(folder: Path) -> list[Path]:
    facts = {"robot": "go2", "driver": "twin:mild", "task": "go2-velocity", "source": "go2", "full": False, "rounds": 1}
    return [_json(folder / "workspace.json", facts)]


# --- servo maps ---
def _servos(folder: Path) -> list[Path]:
    (folder / "feetech.toml").write_bytes((SO101.model_path.parent / "feetech.toml").read_bytes())
    motor = {"drive_mode": 0, "homing_offset": 12, "range_min": 700, "range_max": 3300}
    arm = {name: motor | {"id": k + 1} for k, name in enumerate(SO101.spec.joint_names)}
    return [folder / "feetech.toml", _json(folder / "arm.json", arm)]


def _use_servos(folder: Path) -> object:
    return read_servo_map(SO101, "feetech", str(folder / "feetech.toml"), str(folder / "arm.json"))


FORMATS = {
    "motion": Format(make=_motion_npz, use=_use_motion),
    "motion csv": Format(make=_motion_csv, use=_use_motion),
    "motion pickle": Format(make=_motion_pickle, use=_use_motion),
    "motion joblib": Format(make=_motion_joblib, use=_use_motion),
    "motion bvh": Format(make=_motion_bvh, use=_use_motion),
    "motion loco-mujoco": Format(make=_motion_loco, use=_use_motion),
    "calibration": Format(make=_calibration, use=_use_calibration),
    "actuator model": Format(make=_rung, use=lambda folder: read_actuator(folder / "uan")),
    "delta action": Format(make=_delta, use=load_delta),
    "policy": Format(make=_policy, use=_use_policy),
    "bundle, signed again": Format(make=_bundle, use=_use_bundle, sign=_sign_bundle),
    "bundle's manifest": Format(make=_manifest, use=load_bundle),
    "certificate": Format(
        make=_certificate, use=lambda folder: read_certificate(folder / "certificate.json"), sign=_sealed(Certificate)
    ),
    "record of a rung": Format(
        make=_record, use=lambda folder: read_record(folder / "shadow.json"), sign=_sealed(RungRecord)
    ),
    "scenarios": Format(make=_suites, use=_each(read_suite)),
    "score": Format(make=_score, use=read_score),
    "diagnosis": Format(make=_diagnosis, use=_use_diagnosis),
    "symptoms": Format(make=_symptoms, use=read_table),
    "policy rows": Format(make=_rows, use=_use_rows),
    "tap": Format(make=_tap, use=lambda folder: read_tap(folder / "tap")),
    "episode": Format(make=_episode, use=lambda folder: load_episode(folder / "episode.npz")),
    "run": Format(make=_run, use=_use_run, sign=_sign_run),
    "workspace": Format(make=_workspace, use=opened),
    "servo map": Format(make=_servos, use=_use_servos),
}
