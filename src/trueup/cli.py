"""The command line: verb -> (config, run). Everything else is elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import tyro

from trueup._version import __version__
from trueup.commands import actuator, calibrate, data, doctor, play, record, robot, sim, task, train, twin
from trueup.core.errors import TrueupError
from trueup.core.outputs import check_outputs

_VERBS: dict[type, Callable[[Any], int]] = {
    robot.ListVerb: robot.run,
    robot.InspectVerb: robot.run,
    robot.InitVerb: robot.run,
    robot.ExportVerb: robot.run,
    twin.ServeVerb: twin.run,
    twin.RevealVerb: twin.run,
    twin.TwinsVerb: twin.run,
    record.RecordVerb: record.run,
    data.CheckVerb: data.run,
    data.ImportVerb: data.run,
    data.ConvertVerb: data.run,
    data.RecoverVerb: data.run,
    calibrate.CalibrateVerb: calibrate.run,
    actuator.ActuatorVerb: actuator.run,
    task.TasksVerb: task.run,
    task.InitTaskVerb: task.run,
    train.TrainVerb: train.run,
    play.PlayVerb: play.run,
    sim.SimVerb: sim.run,
    doctor.DoctorVerb: doctor.run,
}

# a verb in two words beside `calibrate LOG...`: to the parser it is one
_LADDER = "calibrate actuator"

# in the order of the loop
_Verbs = (
    Annotated[
        robot.RobotVerb, tyro.conf.subcommand("robot", description="What a robot is: list, inspect, init, export.")
    ]
    | Annotated[
        twin.TwinVerb,
        tyro.conf.subcommand("twin", description="A virtual robot with hidden physics: serve, reveal, list."),
    ]
    | Annotated[record.RecordVerb, tyro.conf.subcommand("record")]
    | Annotated[
        data.DataVerb,
        tyro.conf.subcommand("data", description="What was measured: check, import, convert, recover logs."),
    ]
    | Annotated[calibrate.CalibrateVerb, tyro.conf.subcommand("calibrate")]
    | Annotated[actuator.ActuatorVerb, tyro.conf.subcommand(_LADDER)]
    | Annotated[
        task.TaskVerb, tyro.conf.subcommand("task", description="What is to be learned: list, init for another robot.")
    ]
    | Annotated[train.TrainVerb, tyro.conf.subcommand("train")]
    | Annotated[play.PlayVerb, tyro.conf.subcommand("play")]
    | Annotated[sim.SimVerb, tyro.conf.subcommand("sim")]
    | Annotated[doctor.DoctorVerb, tyro.conf.subcommand("doctor")]
)

_DESCRIPTION = (
    "Make a simulator agree with a robot. Verbs in the order of the loop; "
    "each tells what goes in and what comes out with --help."
)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one verb; errors end in one line and exit code 2, Ctrl-C in 130."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:2] == _LADDER.split():
        args = [_LADDER, *args[2:]]
    if args in (["--version"], ["-V"]):
        print(f"trueup {__version__}")
        return
    try:
        verb = tyro.cli(_Verbs, args=args, prog="trueup", description=_DESCRIPTION, config=_CONFIG)
        check_outputs(verb)
        code = _VERBS[type(verb)](verb)
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


_CONFIG = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)


def _missing_package(error: ModuleNotFoundError) -> str:
    if error.name is None or error.name.startswith("trueup"):
        raise error
    return f"this needs the package {error.name!r}, which is not installed; `pip install 'trueup[all]'` brings it"


if __name__ == "__main__":
    main()
