"""A first spec from a bare model file: facts of the file are copied, missing ones are guessed and marked.

The rules, in one place:
- joints: those that an actuator of the file drives, or all hinges and slides if it has no actuators; model order
- torque: the tightest of actuatorfrcrange, forcerange, a motor's ctrlrange, URDF effort; else (or where a leg could
  lift the robot ten times over: a placeholder) three times what gravity asks of the joint in the default pose
- velocity: as a URDF says, below 100 rad/s; else 10 rad/s or 1 m/s
- gains: those of the file's position actuators; else kp = I w^2 with w = 2 pi 4 Hz and I the inertia that the joint
  moves in the default pose, between 0.5 and 4 times the torque limit per radian, and more where gravity in that pose
  would bend it farther than `SAG_LEG`, `SAG_ARM` or `SAG_SLIDE`; kd = 1.4 sqrt(kp I)
- pose: keyframe "home" or the first one, if the robot stands in it; else legs that are bent evenly (`draft_pose`)
- contact: the feet and the shapes of the base, as in the built-in robots; shins would count as falls
- floating: the base has a free joint; a URDF floats if its root carries two or more branches of two or more joints
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np

from trueup.core.errors import TrueupError
from trueup.robot.drafts.stance import HINGE, SLIDE, branch_sizes, draft_stance, has_free_joint
from trueup.robot.foreign.untrusted import CheckedModel, quiet_engine, read_model
from trueup.robot.shapes import inertia_diagonal
from trueup.robot.spec import SCHEMA, BaseSpec, JointSpec, RobotSpec

CONTROL_HZ = 50.0
SERVO_HZ = 4.0
DAMPING_RATIO = 0.7
SAG_LEG, SAG_ARM, SAG_SLIDE = 0.1, 0.05, 0.005  # rad, rad, m: how far gravity may bend a joint off its target
MAX_RAD_PER_STEP = 0.4  # of the servo's own oscillation in one physics step
GUESSED_SPEED = {HINGE: 10.0, SLIDE: 1.0}  # rad/s, m/s
PLACEHOLDER_SPEED = 100.0  # rad/s, m/s: no joint is that fast
PLACEHOLDER_TORQUE = 10.0  # times weight times standing height
GRAVITY = 9.81
_ON_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_TOOL_WORDS = ("tool", "tcp", "grip", "ee", "effector", "attach", "pinch", "hand", "tip")


class Draft(NamedTuple):
    """A spec and, by its keys (`torque of joint_a`, `base.floating`), why a number in it is a guess."""

    spec: RobotSpec
    guesses: dict[str, str]


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
        bolted_height = float(self.model.body_pos[self.base, 2])
        self.stance = draft_stance(self.model, self.data, self.base, self.limits, self.floating)
        self.hold_height = self.stance.height + 0.3 if self.floating else bolted_height
        self.inertia = inertia_diagonal(self.model, self.data)
        timestep = float(self.model.opt.timestep)
        substeps = min(max(round(1.0 / (timestep * CONTROL_HZ)), 2), 40) if timestep > 1e-6 else 40
        self.physics_hz = CONTROL_HZ * substeps

    def draft(self) -> Draft:
        spec = RobotSpec(
            schema=SCHEMA,
            name=_robot_name(self.checked.path),
            model=self.checked.path.name,
            description=f"drafted from {self.checked.path.name}",
            control_hz=CONTROL_HZ,
            physics_hz=self.physics_hz,
            base=BaseSpec(
                body=self.model.body(self.base).name,
                floating=self.floating,
                stand_height=round(self.stance.height, 4),
                hold_height=round(self.hold_height, 4),
            ),
            joints=tuple(self._joint(joint) for joint in self.joints),
            imu=self._site(("imu",)),
            feet=tuple(str(self.model.geom(foot).name) for foot in self.stance.feet),
            end_effector=None if self.floating else self._site(_TOOL_WORDS),
            contact_geoms=tuple(str(self.model.geom(geom).name) for geom in self.stance.ground),
        )
        return Draft(spec, self.guesses)

    def _choose_joints(self) -> list[int]:
        """Joints that the file drives; all that turn or slide if it drives none."""
        model = self.model
        kinds = enumerate(model.jnt_type)
        movable = [joint for joint, kind in kinds if kind in (HINGE, SLIDE) and model.joint(joint).name]
        if not movable:
            raise TrueupError("has no named hinge or slide joint: there is nothing to control", file=self.checked.path)
        driven = [joint for joint in movable if self._actuators(joint)] or movable
        for joint in movable:
            if joint not in driven:
                self.guesses[f"passive {model.joint(joint).name}"] = "no actuator drives it: left out"
        return driven

    def _actuators(self, joint: int) -> list[int]:
        model = self.model
        drives = np.isin(model.actuator_trntype, _ON_JOINT) & (model.actuator_trnid[:, 0] == joint)
        return [int(actuator) for actuator in np.flatnonzero(drives)]

    def _choose_base(self) -> int:
        """The body on the world that carries most of the joints."""
        owners = [int(self.model.body_rootid[self.model.jnt_bodyid[joint]]) for joint in self.joints]
        return max(sorted(set(owners)), key=owners.count)

    def _position_limits(self, joint: int) -> tuple[float, float]:
        low, high = (float(x) for x in self.model.jnt_range[joint])
        if self.model.jnt_limited[joint] and low < high:
            return low, high
        reach = math.pi if self.model.jnt_type[joint] == HINGE else 1.0
        self._guess("position", joint, "the model has no limits here")
        return -reach, reach

    def _is_floating(self) -> bool:
        if not self.checked.is_urdf:
            return has_free_joint(self.model, self.base)
        branches = branch_sizes(self.model, self.base)
        legged = sum(1 for size in branches if size >= 2) >= 2
        named_world = any(link.attrs.get("name") == "world" for link in self.checked.tree.find_all("link"))
        self.guesses["base.floating"] = f"a URDF does not say; its root carries branches of {branches} joints"
        return legged and not named_world

    def _site(self, words: tuple[str, ...]) -> str | None:
        names = [str(self.model.site(site).name) for site in range(self.model.nsite)]
        return next((name for name in names if any(word in name.lower() for word in words)), None)

    def _guess(self, key: str, joint: int, reason: str) -> None:
        self.guesses[f"{key} of {self.model.joint(joint).name}"] = reason

    def _joint(self, joint: int) -> JointSpec:
        name = str(self.model.joint(joint).name)
        if self.stance.guess is not None:
            self._guess("default", joint, self.stance.guess)
        torque = self._torque(joint)
        kp, kd = self._gains(joint, torque)
        return JointSpec(
            name=name,
            position=self.limits[joint],
            velocity=self._velocity(joint, name),
            torque=_rounded(torque),
            kp=_rounded(kp),
            kd=_rounded(kd),
            default=self.stance.pose[joint],
        )

    def _velocity(self, joint: int, name: str) -> float:
        speed = self.checked.urdf_speeds.get(name)
        if speed is not None and speed < PLACEHOLDER_SPEED:
            return speed
        source = "nothing about speed" if speed is None else f"{speed:g} per second, a placeholder"
        self._guess("velocity", joint, f"the file says {source}")
        return GUESSED_SPEED[int(self.model.jnt_type[joint])]

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
        largest = PLACEHOLDER_TORQUE * self._weight(self.base) * max(self.stance.height, 0.1)
        if positive and (not self.floating or min(positive) < largest):
            return min(positive)
        placeholder = f"the file's {min(positive):g} is a placeholder: " if positive else ""
        self._guess("torque", joint, f"{placeholder}three times what gravity asks of it in the default pose")
        return max(1.0, 3.0 * self._gravity_load(joint))

    def _weight(self, body: int) -> float:
        """Of a body and all that hangs on it, N."""
        return float(self.model.body_subtreemass[body]) * GRAVITY

    def _gravity_load(self, joint: int) -> float:
        body = int(self.model.jnt_bodyid[joint])
        weight = max(self._weight(body), self._weight(self.base) / 2 if self.floating else 0.0)  # two legs carry it all
        if self.model.jnt_type[joint] == SLIDE:
            return weight
        return weight * float(np.linalg.norm(self.data.subtree_com[body] - self.data.xanchor[joint]))

    def _gains(self, joint: int, torque: float) -> tuple[float, float]:
        model = self.model
        for actuator in self._actuators(joint):
            gain, bias = float(model.actuator_gainprm[actuator, 0]), model.actuator_biasprm[actuator]
            servo = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE
            if servo and gain > 0.0 and abs(bias[1] + gain) < 1e-6 * gain:
                gear = float(model.actuator_gear[actuator, 0]) ** 2
                return gain * gear, max(0.0, -float(bias[2])) * gear
        dof = model.jnt_dofadr[joint]
        inertia, load = float(self.inertia[dof]), abs(float(self.stance.load[dof]))
        sag = SAG_SLIDE if model.jnt_type[joint] == SLIDE else SAG_LEG if self.floating else SAG_ARM
        kp, kd = guess_gains(inertia, torque, self.physics_hz, load, sag)
        bends = f" and the weight that it carries: sags by {load / kp:.2g}" if load > 0.01 * sag * kp else ""
        self._guess("kp", joint, f"from the inertia that it moves{bends}")
        self._guess("kd", joint, "from kp and the inertia")
        return kp, kd


def guess_gains(
    inertia: float, torque: float, physics_hz: float, load: float = 0.0, sag: float = SAG_LEG
) -> tuple[float, float]:
    """Return kp and kd of a servo that suits inertia (kg m^2), torque limit and load (N m), stable at this rate.

    sag  how far the load may bend it, rad; a load beyond the torque limit cannot be held by any gain
    """
    carries = min(load, torque) / sag
    kp = max(min(max(inertia * (2.0 * math.pi * SERVO_HZ) ** 2, 0.5 * torque), 4.0 * torque), carries)
    kp = min(kp, inertia * (MAX_RAD_PER_STEP * physics_hz) ** 2)
    return kp, 2.0 * DAMPING_RATIO * math.sqrt(kp * inertia)


def _rounded(value: float) -> float:
    """Four significant digits: a drafted number should not look measured."""
    return float(f"{value:.4g}")


def _robot_name(path: Path) -> str:
    stem = path.resolve().parent.name if path.stem in ("model", "robot", "scene") else path.stem
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", stem).lstrip("_.-")[:64]
    return name or "robot"
