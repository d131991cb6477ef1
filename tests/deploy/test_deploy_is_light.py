"""Deploy starts without simulator, learner or plots, in a fresh process, and from the packages of a bare install."""

import subprocess
import sys

import pytest

HEAVY = ("mujoco", "torch", "scipy", "plotly", "h5py", "pyarrow", "onnxruntime", "onnx", "mcap", "rosbags", "viser")
WALK = """
import pkgutil, sys, importlib
import trueup.deploy
for module in pkgutil.walk_packages(trueup.deploy.__path__, "trueup.deploy."):
    if ".wiggle" not in module.name:
        importlib.import_module(module.name)
import trueup.report.operate.deploy
print(*sorted(name for name in sys.modules if "." not in name))
"""
RUN = """
import builtins, sys
real = builtins.__import__
HEAVY = {heavy!r}
def guarded(name, *rest, **more):
    if name.partition(".")[0] in HEAVY:
        raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
    return real(name, *rest, **more)
builtins.__import__ = guarded
from trueup.deploy.verbs import DeployVerb
from trueup.report.operate.deploy import run_deploy
sys.exit(run_deploy(DeployVerb({bundle!r}, rung="replay")))
"""


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_no_module_of_deploy_brings_anything_heavy():
    done = python(WALK)
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & set(HEAVY)


@pytest.mark.medium
def test_a_rung_is_climbed_with_the_packages_of_a_bare_install(tmp_path):
    from made_deploys import standing_bundle

    bundle = standing_bundle(tmp_path / "stand.bundle")
    done = python(RUN.format(heavy=HEAVY, bundle=str(bundle.path)))
    assert done.returncode == 0, done.stderr
    assert "rung replay passed" in done.stdout
    assert (tmp_path / "stand.bundle.ladder" / "replay.json").is_file()
