"""Whole passages of the gate: a policy that stands, in a suite in which standing is enough, or is not."""

import numpy as np
import pytest
from made_suites import STAND, suite_file
from opened import opened

import trueup as tu
from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import write_bundle
from trueup.policy.bundle.certificate import certificate_path, read_certificate, require_certificate
from trueup.policy.bundle.passport import PolicyOrigin
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.net import NetWiring, PolicyNet
from trueup.policy.normalizer import Normalizer
from trueup.policy.runner import PolicyRunner
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.train.bundles.measure import goal_facts, make_passport, measure_ranges
from trueup.verify.verbs import VerifyVerb
from trueup.verify.verify import verify

COMMANDS = (
    STAND
    + """
[[scenario]]
name = "commands"
title = "all commands"
seconds = 3.0
success = { error = 5.0 }
"""
)
EASY = COMMANDS.replace("scale = 0.05", "scale = 0.95", 1)


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """A bundle of go2-velocity whose network answers zero."""
    env = TaskEnv(load_task("go2-velocity"), EnvCfg(nenv=8, threads=1))
    layers = ((np.zeros((12, env.nactor), np.float32), np.zeros(12, np.float32)),)
    net = PolicyNet(spec=NetWiring(), actor=layers, normalizer=Normalizer(env.nactor))
    ranges, commands = measure_ranges(env, PolicyRunner(net, env.nenv), 2.0)
    passport = make_passport(env, env.policy_spec(), goal_facts(env, commands), PolicyOrigin(format="trueup"), ranges)
    path = tmp_path_factory.mktemp("gate") / "stand.bundle"
    write_bundle(path, passport, policy_onnx(net))
    return path


def asked(bundle, folder, text, **more):
    given = {"trials": 8, "worlds": 4, "threads": 1, "films": False, "second": "none", "out": folder / "out"}
    return VerifyVerb(bundle=bundle, scenarios=str(suite_file(folder, text)), **(given | more))


@pytest.mark.medium
def test_who_stands_where_standing_is_asked_gets_a_certificate(standing, tmp_path):
    found = verify(asked(standing, tmp_path, EASY))
    states = {check.name: check.state for check in found.certificate.checks}
    assert {"parity", "robot", "inference", "mujoco/stand", "mujoco/limp", "mujoco/commands", "sim2sim"} <= set(states)
    assert states["parity"] == states["robot"] == states["mujoco/stand"] == "pass"
    assert states["sim2sim"] == "skipped"
    assert found.passed
    assert read_certificate(found.path) == found.certificate
    assert found.path == certificate_path(standing)
    assert require_certificate(standing, tu.load_bundle(standing).hash).passed
    prediction = found.certificate.prediction
    assert prediction.worlds == 4
    assert prediction.error_low <= prediction.error <= prediction.error_high
    assert prediction.error < 0.05  # it stands, as it is asked to
    assert "may run on go2" in found.table()


@pytest.mark.medium
def test_what_blocks_is_named_with_a_remedy_and_the_gate_goes_on_where_it_was(standing, tmp_path):
    found = verify(asked(standing, tmp_path, COMMANDS))
    (blocking,) = found.certificate.blocking
    assert blocking.name == "mujoco/limp"
    assert "8 fell" in blocking.found
    assert blocking.remedy == "train with this in Task.randomize: torque_limit"
    with pytest.raises(TrueupError, match="did not pass the gate: mujoco/limp"):
        require_certificate(standing, tu.load_bundle(standing).hash)
    kept = tmp_path / "out" / "mujoco" / "scenarios" / "stand.json"
    before = kept.stat().st_mtime_ns
    again = verify(asked(standing, tmp_path, COMMANDS))
    assert kept.stat().st_mtime_ns == before
    assert again.certificate.checks[3:] == found.certificate.checks[3:]  # the first are timed anew


@pytest.mark.medium
def test_the_page_has_the_verdict_first_and_both_engines_side_by_side_in_a_browser(standing, tmp_path):
    pytest.importorskip("sapien")
    found = verify(asked(standing, tmp_path, COMMANDS, second="sapien", films=True))
    with opened(found.report(tmp_path / "out" / "index.html")) as page:
        assert page.complaints == []
        assert page.inner_text(".verdict").startswith("stand may not run on go2: mujoco/limp, sapien/limp")
        tables = [one.inner_text() for one in page.query_selector_all("table")]
        assert "train with this in Task.randomize: torque_limit" in tables[0]
        assert "not passed in mujoco either: see mujoco/limp" in tables[0]
        assert "sapien/commands" in tables[1]
        assert "on a robot: velocity error" in page.inner_text("body")
        boxes = [one.bounding_box() for one in page.query_selector_all(".films figure")]
        assert len(boxes) >= 2
        assert boxes[0]["y"] == boxes[1]["y"]
        page.wait_for_function("[...document.querySelectorAll('video')].every(film => film.videoWidth > 0)")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.medium
def test_scenarios_that_were_left_out_block(standing, tmp_path):
    found = verify(asked(standing, tmp_path, EASY, only=("stand",)))
    assert {check.name: check.found for check in found.certificate.blocking} == {
        "mujoco/limp": "not tried",
        "mujoco/commands": "not tried",
    }


@pytest.mark.medium
def test_the_second_engine_is_asked_what_must_be_passed(standing, tmp_path):
    pytest.importorskip("sapien")
    found = verify(asked(standing, tmp_path, EASY, second="sapien"))
    checks = {check.name: check for check in found.certificate.checks}
    assert checks["sapien/stand"].state == "pass"
    assert checks["sim2sim"].state == "pass"  # millimetres a second in both
    assert found.certificate.engines == ("mujoco", "sapien")


def test_a_bundle_that_was_changed_is_not_verified(standing, tmp_path):
    import shutil

    copy = tmp_path / "copy.bundle"
    shutil.copytree(standing, copy)
    network = bytearray((copy / "policy.onnx").read_bytes())
    network[len(network) // 2] ^= 1
    (copy / "policy.onnx").write_bytes(bytes(network))
    with pytest.raises(TrueupError, match=r"policy\.onnx"):
        verify(asked(copy, tmp_path, EASY))
