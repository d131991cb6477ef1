"""Loads a Robot from a user's reference (`go2`, `pendulum:load_mass=1`, `my_robot/`, `arm.urdf`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from trueup.core.arrays import sha256_of
from trueup.core.errors import TrueupError, did_you_mean
from trueup.robot.spec import RobotSpec, read_spec

ZOO = Path(__file__).parent / "zoo"
SPEC_FILE = "spec.toml"
MODEL_SUFFIXES = (".xml", ".mjcf", ".urdf")


@dataclass(frozen=True, kw_only=True)
class Robot:
    """A spec, the model file it belongs to, and the values of its options."""

    spec: RobotSpec
    model_path: Path
    root: Path | None = None  # folder that the model's assets may be read from; None: the model's own
    built_in: bool = False
    options: dict[str, float] = field(default_factory=dict)

    @property
    def model_sha256(self) -> str:
        """Of the model file's bytes and of the options, `name=value` sorted by name; files that it includes are not."""
        options = ",".join(f"{name}={value:g}" for name, value in sorted(self.options.items()))
        return sha256_of([self.model_path.read_bytes(), options])


def zoo_names() -> tuple[str, ...]:
    """Names of the built-in robots."""
    return tuple(sorted(folder.name for folder in ZOO.iterdir() if (folder / SPEC_FILE).is_file()))


def load_robot(reference: str | Path | Robot, *, root: Path | None = None) -> Robot:
    """Load a built-in robot by name, or your own by its folder, spec or model file; a Robot is returned unchanged.

    Options follow a colon: `pendulum:load_mass=1.0,load_length=0.2`. A bare model file gets a drafted spec; its meshes
    may be read from `root`; None: its own folder, and the ROS package that a URDF lies in.
    """
    if isinstance(reference, Robot):
        return reference
    text = str(reference)
    name, options = _split_options(text)
    path = Path(name)
    if name in zoo_names():
        robot = _from_spec(ZOO / name / SPEC_FILE, built_in=True)
    elif path.is_dir():
        robot = _from_spec(path / SPEC_FILE)
    elif path.suffix == ".toml":
        robot = _from_spec(path)
    elif path.is_file() and path.suffix.lower() in MODEL_SUFFIXES:
        from trueup.robot.drafts.draft import draft_spec  # needs MuJoCo: only for bare model files

        robot = Robot(spec=draft_spec(path, root=root), model_path=path, root=root)
    elif path.is_file():
        raise TrueupError(f"a robot is a folder, a spec or a model file ({', '.join(MODEL_SUFFIXES)})", file=path)
    else:
        raise TrueupError(f"no robot {text!r}: neither built in nor a path{did_you_mean(name, zoo_names())}")
    return replace(robot, options=dict(_option(robot.spec, part) for part in options.split(","))) if options else robot


def _split_options(text: str) -> tuple[str, str]:
    if Path(text).exists():
        return text, ""
    name, _, options = text.partition(":")
    return (name, options) if "=" in options else (text, "")


def _option(spec: RobotSpec, text: str) -> tuple[str, float]:
    """Read `key=number` and compare it with what the spec allows."""
    key, _, number = text.partition("=")
    key = key.strip()
    option = spec.options.get(key)
    if option is None:
        raise TrueupError(f"robot {spec.name!r} has no option {key!r}{did_you_mean(key, spec.options)}")
    try:
        value = float(number)
    except ValueError:
        raise TrueupError(f"option {key!r} needs a number, found {number!r}") from None
    if not option.low <= value <= option.high:
        raise TrueupError(f"option {key!r} = {value:g} {option.unit} is outside [{option.low:g}, {option.high:g}]")
    return key, value


def _from_spec(path: Path, *, built_in: bool = False) -> Robot:
    spec = read_spec(path)
    folder = path.parent.resolve()
    model = path.parent / spec.model
    if not model.resolve().is_relative_to(folder):
        raise TrueupError(f"model {spec.model!r} lies outside the robot's folder", file=path, place="model")
    if not model.is_file():
        raise TrueupError(f"model file {spec.model!r} does not exist beside the spec", file=path, place="model")
    return Robot(spec=spec, model_path=model, built_in=built_in)
