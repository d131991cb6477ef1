"""What the ROS 2 and LeRobot drivers load: nothing of their extras before they are asked to connect."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("cyclonedds", "pyarrow", "mujoco", "torch", "scipy", "lerobot")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_drivers_load_no_extra_until_they_connect() -> None:
    made = "from trueup.robot.load import load_robot; from trueup.hardware.drivers.open import open_driver; import sys;"
    made += "open_driver('ros2:lo?domain=1', load_robot('so101')); import trueup.hardware.drivers.lerobot;"
    assert run(f"{made} print([name for name in {HEAVY} if name in sys.modules])").strip() == "[]"


def test_missing_cyclonedds_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['cyclonedds'] = None\n"
        "from trueup.robot.load import load_robot\n"
        "from trueup.hardware.drivers.open import open_driver\n"
        "from trueup.core.errors import TrueupError\n"
        "try:\n    open_driver('ros2:lo?domain=1', load_robot('so101')).connect()\n"
        "except TrueupError as error:\n    print(error)\n"
    )
    assert "pip install 'trueup[ros]'" in run(code)
