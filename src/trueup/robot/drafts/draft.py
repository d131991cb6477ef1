"""A first spec from a bare model file: what the file says is taken over, what it does not say is guessed and marked.

The rules, in one place:
- joints: those that an actuator of the file drives, or all hinges and slides if it has no actuators; model order
- torque: the tightest of actuatorfrcrange, forcerange, a motor's ctrlrange, URDF effort; else (or where a leg could
  lift the robot ten times over: a placeholder) three times what gravity asks of the joint in the default pose
- velocity: as a URDF says, below 100 rad/s; else 10 rad/s or 1 m/s
- gains: those of the file's position actuators; else kp = I w^2 with w = 2 pi 4 Hz and I the inertia that the joint
  moves in the default pose, between 0.5 and 4 times the torque limit per radian, and enough for a leg to sag by at most
  0.2 rad when the robot stands; kd = 1.4 sqrt(kp I)
- pose: keyframe "home" or the first one, if the robot stands in it; else legs that are bent evenly (`draft_pose`)
- contact: the feet and the shapes of the base, as in the built-in robots; shins would count as falls
- floating: the base has a free joint; a URDF floats if its root carries two or more branches of two or more joints
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np

from trueup.core.errors import TrueupError
from trueup.robot.drafts.pose import draft_pose, place
from trueup.robot.drafts.stance import HINGE, SLIDE, branch_sizes, find_feet, ground_geoms, in_order, stance_load
from trueup.robot.foreign.untrusted import CheckedModel, quiet_engine, read_model
from trueup.robot.shapes import collision_geoms, inertia_diagonal, lowest_point
from trueup.robot.spec import SCHEMA, BaseSpec, JointSpec, RobotSpec

CONTROL_HZ = 50.0
SERVO_HZ = 4.0
DAMPING_RATIO = 0.7
SAG_RAD = 0.2
MAX_RAD_PER_STEP = 0.4  # of the servo's own oscillation in one physics step
GUESSED_SPEED = {"hinge": 10.0, "slide": 1.0}  # rad/s, m/s
PLACEHOLDER_SPEED = 100.0  # rad/s, m/s: no joint is that fast
PLACEHOLDER_TORQUE = 10.0  # times weight times standing height
GRAVITY = 9.81
_ON_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_TOOL_WORDS = ("tool", "tcp", "grip", "ee", "effector", "attach", "pinch", "hand", "tip")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A spec and, by its keys (`torque of joint_a`, `base.floating`), why a number in it is a guess."""

    spec: RobotSpec
    guesses: dict[str, str] = field(default_factory=dict)


def draft_spec(path: Path, root: Path | None = None) -> RobotSpec:
    """Return a spec for a bare MJCF or URDF file (see the module for what is guessed)."""
    return make_draft(read_model(path, root)).spec


def make_draft(checked: CheckedModel) -> Draft:
    """Draft a spec for a model that passed the checks, and say which of its numbers are guesses."""
    try:
        with quiet_engine():
            return _Drafter(checked).draft()
    except (ValueError, TypeError, mujoco.FatalError) as error:
        raise TrueupError(f"cannot draft a spec for this model: {error}", file=checked.path) from None


class _Drafter:
    """The model, posed once, and the guesses so far."""

    def __init__(self, checked: CheckedModel) -> None:
        self.checked = checked
        self.guesses: dict[str, str] = {}
        self.model = checked.spec.compile()
        self.data = mujoco.MjData(self.model)
        self.joints = self._choose_joints()
        self.base = self._choose_base()
        self.limits = {joint: self._position_limits(joint) for joint in self.joints}
        self.floating = self._is_floating()
        self._base_height = float(self.model.body_pos[self.base, 2])
        self.pose = self._choose_pose()
        timestep = float(self.model.opt.timestep)
        substeps = min(max(round(1.0 / (timestep * CONTROL_HZ)), 2), 40) if timestep > 1e-6 else 40
        self.physics_hz = CONTROL_HZ * substeps
        place(self.model, self.data, self.base, self.pose)
        self.inertia = inertia_diagonal(self.model, self.data)
        self.solid = collision_geoms(self.model)
        self.low = {geom: lowest_point(self.model, self.data, geom) for geom in self.solid}
        self.stand_height = max(0.0, -min(self.low.values(), default=0.0)) if self.floating else 0.0
        feet = find_feet(self.model, self.joints, self.low) if self.floating else []
        self.feet = in_order(self.data, feet)
        self.load = stance_load(self.model, self.data, self.feet) if self.feet else np.zeros(self.model.nv)

    def draft(self) -> Draft:
        floating, stand_height = self.floating, round(self.stand_height, 4)
        bolted = round(self._base_height, 4)
        spec = RobotSpec(
            schema=SCHEMA,
            name=_robot_name(self.checked.path),
            model=self.checked.path.name,
            description=f"drafted from {self.checked.path.name}",
            control_hz=CONTROL_HZ,
            physics_hz=self.physics_hz,
            base=BaseSpec(
                body=self.model.body(self.base).name,
                floating=floating,
                stand_height=stand_height,
                hold_height=round(stand_height + 0.3, 4) if floating else bolted,
            ),
            joints=tuple(self._joint(joint) for joint in self.joints),
            imu=self._site(lambda name: "imu" in name),
            feet=tuple(self._geom_name(geom) for geom in self.feet),
            end_effector=None if floating else self._site(lambda name: any(word in name for word in _TOOL_WORDS)),
            contact_geoms=tuple(
                self._geom_name(geom) for geom in ground_geoms(self.model, self.base, self.feet, self.low)
            ),
        )
        return Draft(spec=spec, guesses=self.guesses)

    def _choose_joints(self) -> list[int]:
        """Joints that the file drives; all that turn or slide if it drives none."""
        model = self.model
        movable = [
            joint for joint in range(model.njnt) if model.jnt_type[joint] in (HINGE, SLIDE) and model.joint(joint).name
        ]
        if not movable:
            raise TrueupError(
                "has no named hinge or slide joint, so there is nothing to control", file=self.checked.path
            )
        driven = {joint for joint in movable if self._actuators(joint)}
        if not driven:
            return movable
        for joint in movable:
            if joint not in driven:
                self.guesses[f"passive {model.joint(joint).name}"] = "no actuator drives it: left out"
        return [joint for joint in movable if joint in driven]

    def _actuators(self, joint: int) -> list[int]:
        model = self.model
        drives = np.isin(model.actuator_trntype, _ON_JOINT) & (model.actuator_trnid[:, 0] == joint)
        return [int(actuator) for actuator in np.flatnonzero(drives)]

    def _choose_base(self) -> int:
        """The body on the world that carries most of the joints."""
        model = self.model
        owners = [int(model.body_rootid[model.jnt_bodyid[joint]]) for joint in self.joints]
        return max(sorted(set(owners)), key=owners.count)

    def _position_limits(self, joint: int) -> tuple[float, float]:
        low, high = (float(x) for x in self.model.jnt_range[joint])
        if self.model.jnt_limited[joint] and low < high:
            return low, high
        reach = math.pi if self.model.jnt_type[joint] == HINGE else 1.0
        self._guess("position", joint, "the model has no limits here")
        return -reach, reach

    def _choose_pose(self) -> dict[int, float]:
        drafted = draft_pose(self.model, self.base, self.limits, self.floating)
        if drafted.guess is not None:
            for joint in self.joints:
                self._guess("default", joint, drafted.guess)
        return drafted.joints

    def _has_free_joint(self) -> bool:
        first = self.model.body_jntadr[self.base]
        return bool(first >= 0 and self.model.jnt_type[first] == mujoco.mjtJoint.mjJNT_FREE)

    def _is_floating(self) -> bool:
        if not self.checked.is_urdf:
            return self._has_free_joint()
        branches = branch_sizes(self.model, self.base)
        legged = sum(1 for size in branches if size >= 2) >= 2
        named_world = any(link.attrs.get("name") == "world" for link in self.checked.tree.find_all("link"))
        self.guesses["base.floating"] = f"a URDF does not say; its root carries branches of {branches} joints"
        return legged and not named_world

    def _geom_name(self, geom: int) -> str:
        return str(self.model.geom(geom).name)

    def _site(self, wanted: Callable[[str], bool]) -> str | None:
        names = [self.model.site(site).name for site in range(self.model.nsite)]
        return next((name for name in names if name and wanted(name.lower())), None)

    def _guess(self, key: str, joint: int, reason: str) -> None:
        self.guesses[f"{key} of {self.model.joint(joint).name}"] = reason

    def _joint(self, joint: int) -> JointSpec:
        name = str(self.model.joint(joint).name)
        torque = self._torque(joint)
        kp, kd = self._gains(joint, torque)
        return JointSpec(
            name=name,
            position=self.limits[joint],
            velocity=self._velocity(joint, name),
            torque=_rounded(torque),
            kp=_rounded(kp),
            kd=_rounded(kd),
            default=self.pose[joint],
        )

    def _velocity(self, joint: int, name: str) -> float:
        declared = self.checked.urdf_joints.get(name)
        speed = None if declared is None else declared.velocity
        if speed is not None and speed < PLACEHOLDER_SPEED:
            return speed
        told = "nothing about speed" if speed is None else f"{speed:g} per second, a placeholder"
        self._guess("velocity", joint, f"the file says {told}")
        return GUESSED_SPEED["hinge" if self.model.jnt_type[joint] == HINGE else "slide"]

    def _torque(self, joint: int) -> float:
        model = self.model
        found = []
        if model.jnt_actfrclimited[joint]:
            found.append(np.abs(model.jnt_actfrcrange[joint]).max())
        for actuator in self._actuators(joint):
            gear = abs(model.actuator_gear[actuator, 0])
            if model.actuator_forcelimited[actuator]:
                found.append(np.abs(model.actuator_forcerange[actuator]).max() * gear)
            plain = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE
            if plain and model.actuator_ctrllimited[actuator]:
                gain = abs(model.actuator_gainprm[actuator, 0])
                found.append(np.abs(model.actuator_ctrlrange[actuator]).max() * gain * gear)
        positive = [float(value) for value in found if value > 0.0]
        if positive and (not self.floating or min(positive) < self._largest_torque()):
            return min(positive)
        told = f"the file's {min(positive):g} is a placeholder: " if positive else ""
        self._guess("torque", joint, f"{told}three times what gravity asks of it in the default pose")
        return max(1.0, 3.0 * self._gravity_load(joint))

    def _largest_torque(self) -> float:
        weight = float(self.model.body_subtreemass[self.base]) * GRAVITY
        return PLACEHOLDER_TORQUE * weight * max(self.stand_height, 0.1)

    def _gravity_load(self, joint: int) -> float:
        model, data = self.model, self.data
        body = model.jnt_bodyid[joint]
        mass = float(model.body_subtreemass[body])
        if self.floating:
            mass = max(mass, float(model.body_subtreemass[self.base]) / 2)  # two legs carry the whole
        if model.jnt_type[joint] == SLIDE:
            return mass * GRAVITY
        return mass * GRAVITY * float(np.linalg.norm(data.subtree_com[body] - data.xanchor[joint]))

    def _gains(self, joint: int, torque: float) -> tuple[float, float]:
        model = self.model
        for actuator in self._actuators(joint):
            gain, bias = float(model.actuator_gainprm[actuator, 0]), model.actuator_biasprm[actuator]
            servo = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE
            if servo and gain > 0.0 and abs(bias[1] + gain) < 1e-6 * gain:
                gear = float(model.actuator_gear[actuator, 0]) ** 2
                return gain * gear, max(0.0, -float(bias[2])) * gear
        dof = model.jnt_dofadr[joint]
        inertia, load = float(self.inertia[dof]), abs(float(self.load[dof]))
        self._guess("kp", joint, "from the inertia that it moves" + (" and the weight that it carries" if load else ""))
        self._guess("kd", joint, "from kp and the inertia")
        return guess_gains(inertia, torque, self.physics_hz, load)


def guess_gains(inertia: float, torque: float, physics_hz: float, load: float = 0.0) -> tuple[float, float]:
    """Return kp and kd of a servo that suits inertia (kg m^2), torque limit and load (N m), stable at this rate."""
    kp = min(max(inertia * (2.0 * math.pi * SERVO_HZ) ** 2, 0.5 * torque, load / SAG_RAD), 4.0 * torque)
    kp = min(kp, inertia * (MAX_RAD_PER_STEP * physics_hz) ** 2)
    return kp, 2.0 * DAMPING_RATIO * math.sqrt(kp * inertia)


def _rounded(value: float) -> float:
    """Four significant digits: a drafted number should not look measured."""
    return float(f"{value:.4g}")


def _robot_name(path: Path) -> str:
    stem = path.resolve().parent.name if path.stem in ("model", "robot", "scene") else path.stem
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", stem).lstrip("_.-")[:64]
    return name or "robot"
