"""The command line: verb -> the stage's own config, and the function that runs it and prints. Nothing else.

Only the modules of the verb that was asked for are imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import make_dataclass
from importlib import import_module
from typing import Any

import tyro

from trueup._version import __version__
from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.files import check_outputs
from trueup.core.stop import begin_command

# in the order of the loop
_VERBS = {
    "robot list": ("robot.verbs:ListVerb", "report.robot:run_list"),
    "robot inspect": ("robot.verbs:InspectVerb", "report.robot:run_inspect"),
    "robot init": ("robot.verbs:InitVerb", "report.robot:run_init"),
    "robot export": ("calibrate.verbs:ExportVerb", "report.robot:run_export"),
    "twin serve": ("twin.verbs:ServeVerb", "twin.verbs:run_serve"),
    "twin reveal": ("twin.verbs:RevealVerb", "twin.verbs:run_reveal"),
    "twin list": ("twin.verbs:TwinsVerb", "twin.verbs:run_list"),
    "record": ("record.verbs:RecordVerb", "report.record:run_record"),
    "data check": ("data.verbs:CheckLogVerb", "report.log:run_check"),
    "data import": ("data.verbs:ImportLogVerb", "report.log:run_import"),
    "data convert": ("data.verbs:ConvertVerb", "report.log:run_convert"),
    "data recover": ("data.verbs:RecoverVerb", "report.log:run_recover"),
    "calibrate": ("calibrate.verbs:CalibrateVerb", "report.calibration.calibrate:run_calibrate"),
    "calibrate actuator": ("calibrate.verbs:ActuatorVerb", "report.calibration.actuators:run_actuator"),
    "calibrate delta": ("calibrate.delta.verbs:DeltaVerb", "report.calibration.delta:run_delta"),
    "calibrate load": ("calibrate.verbs:LoadVerb", "report.calibration.calibrate:run_load"),
    "motion list": ("motion.verbs:MotionsVerb", "report.training.motion:run_list"),
    "motion import": ("motion.verbs:ImportMotionVerb", "report.training.motion:run_import"),
    "motion retarget": ("motion.verbs:RetargetVerb", "report.training.motion:run_retarget"),
    "motion check": ("motion.verbs:CheckMotionVerb", "report.training.motion:run_check"),
    "motion play": ("motion.verbs:PlayMotionVerb", "report.training.motion:run_play"),
    "task list": ("tasks.verbs:TasksVerb", "report.task:run_list"),
    "task init": ("tasks.verbs:InitTaskVerb", "report.task:run_init"),
    "train": ("train.verbs:TrainVerb", "report.train:run_train"),
    "compare": ("train.compare:CompareVerb", "report.training.compare:run_compare"),
    "export": ("train.bundles.verbs:ExportPolicyVerb", "report.bundle:run_export"),
    "policy import": ("train.bundles.verbs:ImportPolicyVerb", "report.bundle:run_import"),
    "policy feedforward": ("train.bundles.verbs:FeedforwardVerb", "report.bundle:run_feedforward"),
    "play": ("train.play.verbs:PlayVerb", "report.train:run_play"),
    "evaluate": ("evaluate.verbs:EvaluateVerb", "report.prove.evaluate:run_evaluate"),
    "verify": ("verify.verbs:VerifyVerb", "report.prove.verify:run_verify"),
    "wiggle": ("deploy.wiggle.verbs:WiggleVerb", "report.operate.wiggle:run_wiggle"),
    "deploy": ("deploy.verbs:DeployVerb", "report.operate.deploy:run_deploy"),
    "deploy page": ("deploy.page_link:PageVerb", "report.operate.live_page:run_page"),
    "deploy replay": ("deploy.verbs:ReplayVerb", "report.operate.deploy:run_replay"),
    "gap": ("gap.verbs:GapVerb", "report.operate.gap:run_gap"),
    "symptoms": ("gap.symptoms.verbs:SymptomsVerb", "report.operate.symptoms:run_symptoms"),
    "predictions": ("gap.verbs:PredictionsVerb", "report.operate.predictions:run_predictions"),
    "loop": ("loop.verbs:LoopVerb", "loop.show:run_verb"),
    "board": ("loop.verbs:BoardVerb", "loop.show:run_board"),
    "sim": ("world.verbs:SimVerb", "report.drop:run_sim"),
    "doctor": ("doctor.checks:DoctorVerb", "report.doctor:run_doctor"),
}
# shown when a command line cannot be read
_EXAMPLES = {
    "robot inspect": "robot inspect go2",
    "robot init": "robot init my_arm.urdf --out my_arm/",
    "robot export": "robot export fit/ --to isaaclab --out lab/",
    "record": "record go2 --driver twin:harmonic --seconds 20 --out log.mcap",
    "data check": "data check log.mcap --robot go2",
    "data import": "data import recording.csv --mapping mine.toml --out log.mcap",
    "calibrate": "calibrate log.mcap --robot go2 --out fit/",
    "calibrate actuator": "calibrate actuator log.mcap --robot go2 --out ladder/",
    "calibrate load": "calibrate load squat.mcap --robot go2 --fit fit/ --out loaded/",
    "task init": "task init my_dog/ --like go2-velocity --out my_task.py",
    "train": "train go2-velocity --params fit/ --minutes 15 --out runs/walk",
    "compare": "compare runs/a runs/b --out compare.html",
    "export": "export runs/walk --out walk.bundle",
    "play": "play runs/walk",
    "evaluate": "evaluate walk.bundle --out scores/",
    "verify": "verify walk.bundle",
    "wiggle": "wiggle go2 --driver twin:worn",
    "deploy": "deploy walk.bundle --driver twin:worn --rung replay",
    "sim": "sim go2 --seconds 5 --film out.mp4",
    "gap": "gap log.mcap --bundle walk.bundle",
    "loop": "loop go2 --driver twin:harmonic",
}
_GROUPS = {
    "robot": "What a robot is: list, inspect, init, export.",
    "twin": "A virtual robot with hidden physics: serve, reveal, list.",
    "data": "What was measured: check, import, convert, recover logs.",
    "motion": "Reference motions: list, import, retarget, check, play.",
    "policy": "Policies as bundles: import those trained elsewhere, learn a feedforward for a motion.",
    "task": "What is to be learned: list, init for another robot.",
}
_ABOUT = (
    "Make a simulator agree with a robot. Verbs in the order of the loop; "
    "each tells what goes in and what comes out with --help."
)
_CONFIG = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one verb; errors end in one line and exit code 2, Ctrl-C in 130."""
    begin_command()
    args = list(sys.argv[1:] if argv is None else argv)
    if args in (["--version"], ["-V"]):
        print(f"trueup {__version__}")
        return
    try:
        code = _run(args)
    except TrueupError as error:
        print(f"trueup: {error}", file=sys.stderr)
        code = 2
    except ModuleNotFoundError as error:
        print(f"trueup: {_missing_package(error)}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("trueup: stopped", file=sys.stderr)
        code = 130
    except BrokenPipeError:  # `trueup ... | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except OSError as error:  # a disk that fills up, a folder that disappears meanwhile
        where = f"{error.filename}: " if error.filename else ""
        print(f"trueup: {where}{error.strerror or error}", file=sys.stderr)
        code = 2
    sys.exit(code)


def _run(args: list[str]) -> int:
    for words in (2, 1):
        verb = " ".join(args[:words])
        if verb in _VERBS:
            config, run = _VERBS[verb]
            parsed = _parsed(verb, _load(config), args[words:])
            check_outputs(parsed)
            code: int = _load(run)(parsed)
            return code
    _refuse_unknown(args)
    _help(args)
    return 2


def _parsed(verb: str, config: Any, args: list[str]) -> Any:
    """Read the flags; what cannot be read is followed by a command that can."""
    try:
        return tyro.cli(config, args=args, prog=f"trueup {verb}", config=_CONFIG)
    except SystemExit as end:
        if end.code and verb in _EXAMPLES:
            print(f"trueup: for example: trueup {_EXAMPLES[verb]}", file=sys.stderr)
        raise


def _refuse_unknown(args: list[str]) -> None:
    """One line for a verb that does not exist; none for `trueup`, `trueup robot` and --help."""
    if not args or args[0].startswith("-"):
        return
    firsts = dict.fromkeys(verb.partition(" ")[0] for verb in _VERBS)
    if args[0] not in firsts:
        known = did_you_mean(args[0], firsts)
        raise TrueupError(f"there is no verb {args[0]!r}{known}; `trueup --help` tells what each does")
    if len(args) > 1 and not args[1].startswith("-"):
        seconds = [verb.partition(" ")[2] for verb in _VERBS if verb.startswith(f"{args[0]} ")]
        known = did_you_mean(args[1], seconds)
        raise TrueupError(f"`trueup {args[0]}` has no verb {args[1]!r}{known}")


def _help(args: list[str]) -> None:
    """Show the verbs, or those of a group; whatever else was asked for is refused."""
    group = args[0] if args and args[0] in _GROUPS else ""
    shown: dict[str, Any] = {}
    for verb, (config, _) in _VERBS.items():
        first, _, second = verb.partition(" ")
        if group:
            shown |= {second: _listed(_load(config).__doc__)} if first == group else {}
        elif first in _GROUPS:
            shown[first] = _listed(_GROUPS[first])
        else:
            shown[verb] = _listed(_load(config).__doc__)
    tyro.extras.subcommand_cli_from_dict(
        shown, args=args[1:] if group else args, prog=f"trueup {group}".strip(), description=_GROUPS.get(group, _ABOUT)
    )


def _listed(doc: str) -> type:
    """An entry of the list of verbs: the first sentence of its help."""
    return make_dataclass("Listed", [], namespace={"__doc__": doc.strip().split("\n")[0]})


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"trueup.{module}"), name)


def _missing_package(error: ModuleNotFoundError) -> str:
    if error.name is None or error.name.startswith("trueup"):
        raise error
    return f"this needs the package {error.name!r}, which is not installed; `pip install 'trueup[all]'` brings it"


if __name__ == "__main__":
    main()
