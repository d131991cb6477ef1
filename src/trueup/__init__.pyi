"""Names of `trueup` and their modules, for type checkers and for `trueup.__getattr__`."""

from trueup._version import __version__ as __version__
from trueup.calibrate.active.plan import plan_active as plan_active
from trueup.calibrate.calibrate import calibrate as calibrate
from trueup.calibrate.delta.delta import calibrate_delta as calibrate_delta
from trueup.calibrate.export import export_calibration as export_calibration
from trueup.calibrate.score_logs import score_logs as score  # noqa: F401
from trueup.core.errors import TrueupError as TrueupError
from trueup.data.files import read_log as read_log
from trueup.data.files import write_log_file as write_log_file
from trueup.data.import_table import import_logs as import_logs
from trueup.data.lerobot.episodes import import_dataset as import_dataset
from trueup.data.log import Log as Log
from trueup.data.mcap.recover import recover as recover
from trueup.deploy.ladder.replay import replay_recording as replay_recording
from trueup.deploy.verbs import deploy as deploy
from trueup.deploy.wiggle.wiggle import wiggle as wiggle
from trueup.doctor.checks import diagnose as doctor  # noqa: F401
from trueup.evaluate.run import evaluate as evaluate
from trueup.evaluate.score import read_score as read_score
from trueup.gap.gap import gap as gap
from trueup.gap.predictions import predictions as predictions
from trueup.gap.symptoms.symptoms import symptoms as symptoms
from trueup.loop.show import board as board
from trueup.loop.show import loop as loop
from trueup.motion.check import check_motion as check_motion
from trueup.motion.made.make import made_motions as made_motions
from trueup.motion.readers.open import open_motion as open_motion
from trueup.policy.bundle.bundle import load_bundle as load_bundle
from trueup.policy.mlp import load_policy as load_policy
from trueup.record.session import record as record
from trueup.report.operate.live_page import deploy_page as deploy_page
from trueup.report.show import report as report
from trueup.report.show import table as table
from trueup.report.training.compare import compare as compare
from trueup.report.training.motion import import_motion as import_motion
from trueup.report.training.motion import play_motion as play_motion
from trueup.report.training.motion import retarget_motion as retarget_motion
from trueup.robot.drafts.init import init_robot as init_robot
from trueup.robot.inspection.inspect import inspect_robot as inspect_robot
from trueup.robot.load import Robot as Robot
from trueup.robot.load import load_robot as load_robot
from trueup.robot.load import zoo_names as zoo_names
from trueup.robot.reference import check_log as check_log
from trueup.robot.spec import RobotSpec as RobotSpec
from trueup.tasks.load import load_task as load_task
from trueup.tasks.load import task_names as task_names
from trueup.tasks.similar.init import init_task as init_task
from trueup.train.bundles.verbs import export as export
from trueup.train.bundles.verbs import feedforward as feedforward
from trueup.train.bundles.verbs import import_policy as import_policy
from trueup.train.play.verbs import play as play
from trueup.train.verbs import train as train
from trueup.twin.server import serve as serve_twin  # noqa: F401
from trueup.twin.truth.preset import preset_names as twin_presets  # noqa: F401
from trueup.twin.verbs import reveal_twin as reveal_twin
from trueup.verify.verbs import verify as verify
from trueup.world.batch import BatchSim as BatchSim
from trueup.world.batch import SimCfg as SimCfg
from trueup.world.drop import drop as drop
from trueup.world.engines.conformance.run import conformance as conformance
from trueup.world.engines.sapien_sim import SapienSim as SapienSim
from trueup.world.engines.urdf import export_urdf as export_urdf
from trueup.world.fitted.calibration import read_calibration as read_calibration
from trueup.world.replay.replay import replay as replay
from trueup.world.scene.scene import Scene as Scene

def __dir__() -> list[str]: ...
