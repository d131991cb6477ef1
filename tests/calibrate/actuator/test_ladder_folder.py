"""The folder of a ladder: rungs come back under their own problem's key alone, and damage is named."""

import numpy as np
import pytest
from made_calibration import made_calibration
from made_nets import made_net

from trueup.calibrate.actuator.folder import LadderFolder, RungResult, read_actuator, read_ladder
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import rung_named
from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot

PENDULUM = load_robot("pendulum")
PACE = rung_named("pace")


@pytest.fixture
def folder(tmp_path):
    out = LadderFolder(tmp_path)
    params = made_calibration(PENDULUM, ("armature", "damping"))
    out.save(Actuator(rung=PACE, params=params), RungResult(key="a", rung="pace", status="done", count=2))
    return out


def test_a_rung_comes_back_under_its_own_key_alone(folder):
    found = folder.load(PACE, "a")
    assert found is not None
    actuator, result = found
    assert result.count == 2
    assert [one.parameter.name for one in actuator.params.estimates] == ["armature", "damping"]
    assert folder.load(PACE, "b") is None
    assert folder.load(rung_named("M3"), "a") is None


def test_a_rung_that_was_not_supported_is_tried_again(folder):
    uan = rung_named("uan")
    folder.save(None, RungResult(key="a", rung="uan", status="not supported", reason="stands on nothing"))
    assert folder.load(uan, "a") is None


def test_a_net_lies_beside_the_parameters_under_it(folder):
    net = rung_named("net")
    given = made_net("pendulum")
    params = made_calibration(PENDULUM, ("armature",))
    folder.save(Actuator(rung=net, params=params, net=given), RungResult(key="a", rung="net", status="done"))
    found = read_actuator(folder.rung("net"))
    assert found.net is not None
    np.testing.assert_array_equal(found.net.scale, given.scale)
    assert found.params.robot == "pendulum"


@pytest.mark.parametrize("content", ["", "[]", '{"key": 1}', '{"key": "a", "rung": "pace", "status": "perhaps"}'])
def test_a_damaged_rung_is_refused_by_name(folder, content):
    file = folder.rung("pace") / "rung.json"
    file.write_text(content)
    with pytest.raises(TrueupError, match="is not a rung of a ladder") as caught:
        folder.load(PACE, "a")
    assert caught.value.file == str(file)
    with pytest.raises(TrueupError, match="no such file"):
        read_ladder(folder.path)
