"""UAN on the logs of a delta action: a residual torque that is learned from positions alone (arXiv 2502.10894).

The robot of these logs may stand on its feet: it is replayed in short pieces, so that it does not fall meanwhile.
"""

from __future__ import annotations

from dataclasses import replace

from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.shooting import DeltaShooting
from trueup.calibrate.delta.states import state_tracks
from trueup.calibrate.nets.uan.regress import RegressCfg
from trueup.calibrate.nets.uan.uan import UanCfg, make_uan_trainer

CFG = UanCfg(windows=64, regress=RegressCfg(rounds=3, steps=3000))
_PIECE_S = 0.5  # of a robot with a free base


def with_uan(problem: DeltaProblem) -> DeltaShooting:
    """The simulator with a learned residual torque, on the same tracks."""
    robot, is_free = problem.robot, problem.shooting.tracks.base_pos is not None
    cfg = replace(CFG, physics_hz=robot.spec.physics_hz, seed=problem.cfg.seed)
    if is_free:
        cfg = replace(cfg, window_s=0.4, warm_up_s=0.1, piece_s=_PIECE_S)
    tracks = state_tracks(robot, problem.fitted_logs, problem.cfg)
    trainer = make_uan_trainer(robot, tracks, problem.fit, cfg)
    while not trainer.done:
        trainer.iterate()
    return problem.shooting.with_net(trainer.result())
