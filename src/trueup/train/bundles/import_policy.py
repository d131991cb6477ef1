"""Import: from a network trained elsewhere and its layout to a bundle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import sha256_of_file
from trueup.core.documents import read_bytes
from trueup.core.errors import TrueupError
from trueup.policy.action import JointOrder
from trueup.policy.bundle.bundle import write_bundle
from trueup.policy.bundle.golden import TOLERANCE, action_distance
from trueup.policy.bundle.passport import GoalFacts, PolicyOrigin
from trueup.policy.foreign import metadata
from trueup.policy.foreign.layout import Layout, read_layout
from trueup.policy.foreign.sdk_orders import sdk_order
from trueup.policy.foreign.toml_layout import LayoutFile, build, merged
from trueup.policy.graph.net import GraphNet, GraphPolicy
from trueup.policy.graph.onnx_file import MAX_BYTES, OnnxGraph, parse_onnx
from trueup.robot.load import Robot, load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.foreign import fitting_tasks, follows_motion, with_layout
from trueup.tasks.load import load_task
from trueup.train.bundles.export import Exported, checked
from trueup.train.bundles.measure import goal_facts, make_passport, measure_ranges
from trueup.train.bundles.trial import torchscript_to_onnx, try_onnx
from trueup.train.bundles.verbs import ImportPolicyVerb

_SIMULATIONS = 32
_TORCHSCRIPT = (".pt", ".pth", ".jit", ".ts")


@dataclass(frozen=True, kw_only=True)
class _Network:
    """A network as ONNX; of a TorchScript file also observations and torch's actions."""

    onnx: bytes
    graph: OnnxGraph
    witness: tuple[NDArray[np.generic], NDArray[np.generic]] | None = None


def import_net(verb: ImportPolicyVerb) -> Exported:
    """Read a network, run it in its task, write a bundle; an error names each option that is missing."""
    file, robot = Path(verb.net), load_robot(verb.robot)
    data = read_bytes(file, MAX_BYTES, "policy's network")
    is_script = file.suffix in _TORCHSCRIPT
    graph = None if is_script else parse_onnx(data, file)
    layout = _layout(verb, robot, graph, file)
    net = _Network(onnx=data, graph=graph) if graph is not None else _from_torchscript(file, data, layout)
    try_onnx(net.onnx, file)
    found = GraphNet(net.graph, file)
    for what, expected, has in (
        ("observations", layout.observation.nactor, found.nobs),
        ("actions", len(layout.action.controlled_joints), found.naction),
    ):
        if expected != has:
            raise TrueupError(
                f"has {has} {what}, but layout {layout.name!r} has {expected}: they do not fit", file=file
            )
    task_name, task_note = _task(verb, layout, robot)
    return _write(verb, net, layout, task_name, (*layout.notes, *task_note))


def _layout(verb: ImportPolicyVerb, robot: Robot, graph: OnnxGraph | None, file: Path) -> Layout:
    """The layout as given, or from the network's own metadata; a TOML completes metadata."""
    given = verb.layout
    notes: tuple[str, ...] = ()
    if isinstance(given, Layout):
        return given
    own = graph is not None and metadata.has_layout(graph.metadata)
    if own and (given is None or Path(given).suffix == ".toml"):
        assert graph is not None
        return _from_metadata(verb, graph, file)
    if given is None:
        raise TrueupError(
            "says nothing of its joints itself: name its layout with --layout (rl_sar's config.yaml, unitree_rl_lab's "
            "deploy.yaml, or a layout TOML)",
            file=file,
        )
    joints, known = verb.joints, sdk_order(robot.spec.joint_names)
    if not joints and known is not None:
        joints, notes = known[1], (f"joints that are numbered only are in the order of the SDK of {known[0]}",)
    layout = read_layout(given, joint_names=joints, base=verb.base)
    if layout.format == "unitree_rl_lab" and notes:
        layout = msgspec.structs.replace(layout, notes=(*layout.notes, *notes))
    return layout


def _from_metadata(verb: ImportPolicyVerb, graph: OnnxGraph, file: Path) -> Layout:
    from trueup.core.documents import read_toml

    try:
        layout = metadata.read(graph.metadata)
        if verb.layout is not None:
            layout = merged(read_toml(Path(str(verb.layout)), LayoutFile, "layout"), layout)
        if verb.hz is not None:
            layout = msgspec.structs.replace(layout, control_hz=verb.hz)
        return build(layout, "onnx-metadata", metadata.NOTES)
    except ValueError as error:
        raise TrueupError(str(error)[:500], file=file) from None


def _from_torchscript(file: Path, data: bytes, layout: Layout) -> _Network:
    onnx, obs, action = torchscript_to_onnx(file, data, layout.observation.nactor)
    return _Network(onnx=onnx, graph=parse_onnx(onnx, file), witness=(obs, action))


def _task(verb: ImportPolicyVerb, layout: Layout, robot: Robot) -> tuple[str, tuple[str, ...]]:
    """The task that was named, or the only built-in one that fits."""
    JointOrder(layout.joint_names, robot.spec.joint_names)  # names what differs
    if verb.task is not None:
        return verb.task, ()
    if follows_motion(layout):
        raise TrueupError(
            f"policy {layout.name!r} follows a motion: name it with --task {robot.spec.name}-track:MOTION.npz "
            "(`trueup motion import` makes one)"
        )
    fits = fitting_tasks(layout, robot.spec.name)
    if len(fits) != 1:
        which = f"these fit: {', '.join(fits)}" if fits else f"none of robot {robot.spec.name!r} fits it"
        raise TrueupError(f"name the task that the policy is run in with --task: {which}")
    return fits[0], (f"task {fits[0]}: the built-in one that fits",)


def _write(verb: ImportPolicyVerb, net: _Network, layout: Layout, task_name: str, notes: tuple[str, ...]) -> Exported:
    task = with_layout(load_task(task_name, verb.robot), layout)
    env = TaskEnv(task, EnvCfg(nenv=_SIMULATIONS, threads=1, seed=verb.seed))
    policy = GraphPolicy(GraphNet(net.graph, verb.net, env.nenv))
    measured = measure_ranges(env, policy, verb.seconds) if verb.seconds > 0 else None
    goal = _goal(layout, goal_facts(env, np.zeros((2, env.goal.ncommand), np.float32)))
    files = {f"network {Path(verb.net).name}": sha256_of_file(Path(verb.net))}
    if verb.layout is not None and not isinstance(verb.layout, Layout):
        files[f"layout {Path(verb.layout).name}"] = sha256_of_file(Path(verb.layout))
    torque, torque_note = _torque(verb, layout, env)
    notes = (*notes, *torque_note)
    origin = PolicyOrigin(format=layout.format, run=layout.name, files=files, notes=notes)
    passport = make_passport(
        env,
        env.policy_spec(),
        goal,
        origin,
        None if measured is None else measured[0],
        signs=layout.signs,
        ranges_missing="" if measured else "it was not run when it was imported (--seconds 0)",
    )
    passport = msgspec.structs.replace(passport, torque_limit=torque)
    bundle = write_bundle(verb.out, passport, net.onnx)
    parity = checked(bundle, {})
    if net.witness is not None:
        obs, action = net.witness
        parity["torch"] = action_distance(bundle.net(len(obs))(np.asarray(obs, np.float32)), action)
        if not parity["torch"] <= TOLERANCE:
            raise TrueupError(f"torch and NumPy give actions that differ by {parity['torch']:.3g}", file=verb.net)
    return Exported(bundle=bundle, parity=parity, notes=notes)


def _goal(layout: Layout, task: GoalFacts) -> GoalFacts:
    """The ranges that the policy was trained with where its layout says them, else the task's."""
    if not layout.command_low:
        return task
    return msgspec.structs.replace(task, low=layout.command_low, high=layout.command_high, source="layout")


def _torque(verb: ImportPolicyVerb, layout: Layout, env: TaskEnv) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Torque limits of training, at most the robot's own."""
    names, spec = layout.joint_names, env.robot.spec
    robot = JointOrder(names, spec.joint_names).to_policy(spec.torque_limit)
    torque = verb.torque or layout.torque
    if not torque:
        return tuple(robot.tolist()), ("torque limits: the layout names none, so the robot's own",)
    values = np.array(torque * len(names) if len(torque) == 1 else torque, np.float64)
    if len(values) != len(names):
        raise TrueupError(f"--torque needs one number, or one for each of {len(names)} joints, found {len(values)}")
    above = [k for k in range(len(names)) if values[k] > robot[k]]
    notes = tuple(
        f"torque limit of {names[k]}: {values[k]:g} N m in the layout, the robot gives {robot[k]:g} N m" for k in above
    )
    return tuple(np.minimum(values, robot).tolist()), notes[:3] + (("...",) if len(notes) > 3 else ())
