"""The architecture, held by tests: imports point downward, and the light parts stay light."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_imports_point_downward_only():
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "module",
    [
        "trueup",
        "trueup.robot.spec",
        "trueup.robot.load",
        "trueup.data.log",
        "trueup.hardware.drivers.open",
        "trueup.models.friction",
        "trueup.cli",
    ],
)
def test_light_modules_start_without_engine_learner_or_plots(module):
    code = (
        f"import {module}, sys\n"
        "heavy = {'mujoco', 'torch', 'scipy', 'plotly', 'h5py', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_name_resolves():
    import trueup

    for name in trueup.__all__:
        assert getattr(trueup, name) is not None
