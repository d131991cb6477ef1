"""A replay's window sees the past that the log has, not a standstill."""

import numpy as np
from made_nets import made_net

from trueup.data.log import Log
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.net_actuator import NetActuator
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.replay.replay import ReplayCfg, replay

RATE = 200.0


def driven_log(actuator: NetActuator | None, steps: int = 400) -> Log:
    """A go2 held in the air, driven by a net, with a delay of two and a half physics steps."""
    robot = load_robot("go2")
    sim = BatchSim(robot, SimCfg(control_hz=RATE, physics_hz=RATE, model=ModelCfg(base="fixed")), actuator)
    sim.params.set("delay", 0.0125)
    sim.reset()
    time = np.arange(steps) / RATE
    target = robot.spec.default_pose + 0.2 * np.sin(2 * np.pi * time[:, None] * (0.5 + 0.1 * np.arange(12)))
    pos, vel = np.empty_like(target), np.empty_like(target)
    for t in range(steps):
        pos[t], vel[t] = sim.joint_pos[0], sim.joint_vel[0]
        sim.step(target[t])
    signals = {"joint_pos": pos, "joint_vel": vel, "target_pos": target}
    return Log(time=time, joint_names=robot.spec.joint_names, signals=signals)


def test_windows_repeat_a_log_of_the_same_net_exactly():
    net = made_net(taps=tuple(range(20)), hidden=(32, 32))
    log = driven_log(NetActuator(net))
    cfg = ReplayCfg(window_s=0.25, start="measured", sim=SimCfg(physics_hz=RATE, model=ModelCfg(base="fixed")))
    result = replay(
        load_robot("go2"), log, cfg, prepare=lambda sim: sim.params.set("delay", 0.0125), substep_model=NetActuator(net)
    )
    error = np.abs(result.joint_pos - result.measured_pos).max()
    assert np.abs(result.joint_pos - result.joint_pos[:, :1]).max() > 0.05
    assert error < 2e-3  # half a step of the delay is averaged by the servo and rounded in the history
    moved = np.abs(replay(load_robot("go2"), log, cfg).joint_pos - result.measured_pos).max()
    assert moved > 10 * error
