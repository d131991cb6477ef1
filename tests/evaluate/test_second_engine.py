"""The same trials in the second engine: same numbers drawn, what it lacks is named, and feet find the ground."""

from __future__ import annotations

import numpy as np
import pytest
from made_suites import made_bundle, spec_of

from trueup.evaluate.scenarios.scenario import Carpet, ParameterChange, Scenario, Shove, StartNoise, TerrainSize
from trueup.evaluate.trials.run import run_trials
from trueup.evaluate.trials.world import TrialCfg, make_world
from trueup.tasks.load import load_task

pytest.importorskip("sapien")
TASK, SPEC = load_task("go2-velocity"), spec_of()
VARY = {"mass_scale": ParameterChange(scale=(0.9, 1.1), of="trunk"), "delay": ParameterChange(add=(0.0, 0.005))}


def scenario(**fields: object) -> Scenario:
    start = StartNoise(joint_pos=0.05, tilt=0.03)
    return Scenario(**({"name": "made", "seconds": 1.0, "command": {"forward": 0.0}, "start": start} | fields))


def both(made: Scenario, trials: int = 4):
    return [
        make_world(TASK, made, SPEC, TrialCfg(trials=trials, threads=1, vary=VARY, engine=e))
        for e in ("mujoco", "sapien")
    ]


@pytest.mark.medium
def test_trials_have_the_same_parameters_and_starts_in_both_engines():
    first, second = both(scenario(params={"payload": ParameterChange(set=2.0)}))
    for name in ("mass_scale", "com_offset", "inertia", "delay", "torque_limit"):
        np.testing.assert_allclose(second.sim.params.get(name), first.sim.params.get(name), rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(second.mass, first.mass)
    np.testing.assert_allclose(second.sim.joint_pos, first.sim.joint_pos, atol=1e-5)
    np.testing.assert_allclose(second.frame.foot_height.min(axis=1), 0.0, atol=1e-3)
    assert second.not_honoured == ()


@pytest.mark.medium
def test_robots_stand_on_stairs_under_pushes_in_both_engines():
    made = scenario(terrain=TerrainSize(kind="stairs_up", size=0.1), push=Shove(newton=10.0, every_s=(0.2, 0.3)))
    power = []
    for engine in ("mujoco", "sapien"):
        trials = run_trials(made_bundle(SPEC), TASK, made, TrialCfg(trials=4, threads=1, vary=VARY, engine=engine))
        assert trials.failed == ("",) * 4
        power.append(trials.table["power"].mean())
    assert power[1] == pytest.approx(power[0], rel=0.5)


@pytest.mark.medium
def test_what_the_engine_cannot_do_is_named():
    made = scenario(carpet=Carpet(along=0.4, across=1.0), params={"contact_timeconst": ParameterChange(set=0.1)})
    first, second = both(made, 2)
    assert first.not_honoured == ()
    assert second.not_honoured == ("contact_timeconst", "carpet")
