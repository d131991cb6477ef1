"""The gate: questions to a bundle, answered by trials, with the number asked for and the remedy.

A scenario of the kind of ground that the policy was trained on must be passed: the lower end of the 95 % interval of
its success rate is at least the scenario's `least`. Other ground is tried too, and what is found there does not block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from trueup.core.errors import TrueupError
from trueup.evaluate.scenarios.scenario import Scenario
from trueup.evaluate.score import ScenarioResult
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.policy.bundle.certificate import GateCheck
from trueup.policy.bundle.golden import action_distance
from trueup.policy.bundle.robot_check import check_against_robot
from trueup.robot.load import Robot
from trueup.tasks.task import Task
from trueup.verify.timing import inference_times
from trueup.world.randomization.targets import parts_of

PARITY = 1e-5
OF_PERIOD = 0.2  # of the control period, for inference
OUTSIDE = 0.02  # of observations
AT_LIMIT = 0.05  # of torques
STOP_MARGIN = 0.0  # of a joint's range
ENGINES_DIFFER = 0.2  # relative, of the error on flat ground
NEGLIGIBLE = 0.01  # difference of errors (m/s, m) that no relative one makes worse


def is_required(scenario: Scenario, task: Task) -> bool:
    """Whether the policy must pass it: ground that it was not trained on is tried for information, ramps aside."""
    return scenario.terrain is None or scenario.required or task.terrain is not None


def scenario_check(result: ScenarioResult, scenario: Scenario, task: Task, engine: str) -> GateCheck:
    """Success rate against what the scenario asks; a scenario whose own change an engine does not know is not asked."""
    name, requirement = (
        f"{engine}/{result.name}",
        f"{result.title}: success at least {result.least:.0%} at 95 % confidence",
    )
    own = {part for changed in scenario.params for part in parts_of(changed)} | {"carpet"}
    lost = sorted(set(result.not_honoured) & own)
    if lost:
        return GateCheck(name=name, state="skipped", asked=requirement, found=f"this engine has no {', '.join(lost)}")
    rate, reasons = result.rate, ", ".join(f"{count} {why}" for why, count in result.reasons.items())
    return GateCheck(
        name=name,
        state="pass" if result.passed else "fail" if is_required(scenario, task) else "warn",
        asked=requirement,
        found=f"{rate.share:.0%} [{rate.low:.0%}, {rate.high:.0%}]" + (f" ({reasons})" if reasons else ""),
        value=rate.share,
        low=rate.low,
        high=rate.high,
        remedy="" if result.passed else remedy(scenario, task, engine),
    )


def second_check(first: ScenarioResult, second: ScenarioResult, scenario: Scenario, task: Task) -> GateCheck:
    """The same in the second engine; what the first engine does not pass either is no matter of engines."""
    check = scenario_check(second, scenario, task, "sapien")
    if check.remedy and not first.passed:
        return msgspec.structs.replace(check, remedy=f"not passed in mujoco either: see mujoco/{second.name}")
    return check


def remedy(scenario: Scenario, task: Task, engine: str) -> str:
    """What would mend a scenario that was not passed."""
    if engine != "mujoco":
        return "train with wider contact_friction and contact_timeconst; docs/engines.md says what differs"
    if scenario.terrain is not None and task.terrain is None:
        return f"train on such ground: trueup train {task.name}-rough"
    if scenario.push is not None:
        return f"train with pushes: Task.pushes = PushCfg(newton={1.6 * scenario.push.newton:.0f})"
    if scenario.params:
        return f"train with this in Task.randomize: {', '.join(scenario.params)}"
    if scenario.heat is not None:
        return "train with motor_strength in Task.randomize, and a higher cost of energy"
    return "train longer: trueup train --resume RUN; or choose a better snapshot: trueup verify RUN --select"


def parity_check(bundle: PolicyBundle) -> GateCheck:
    """Golden sequences through NumPy and, where it is installed, ONNX Runtime."""
    runners, worst = ["NumPy"], bundle.worst
    rows = np.random.default_rng(7).normal(size=(256, bundle.passport.policy.observation.nactor)).astype(np.float32)
    try:
        ours, theirs = bundle.net(len(rows)), bundle.net(len(rows), "onnxruntime")
    except ModuleNotFoundError:
        pass
    else:
        runners.append("ONNX Runtime")
        for _ in range(3):  # a memory must agree after it was used
            a, b = ours(rows), theirs(rows)
            worst = max(worst, action_distance(a, b))
    return GateCheck(
        name="parity",
        state="pass" if worst <= PARITY else "fail",
        asked=f"golden sequences and random observations agree to {PARITY:g}",
        found=f"{worst:.1e} ({' = '.join(['exported', *runners])})",
        value=worst,
        remedy="" if worst <= PARITY else "export again: trueup export RUN",
    )


def robot_check(bundle: PolicyBundle, robot: Robot) -> GateCheck:
    """Passport against the robot, by name and value."""
    try:
        check_against_robot(bundle.passport, robot.spec)
    except TrueupError as error:
        return GateCheck(name="robot", state="fail", asked="passport and robot agree", found=str(error)[:500])
    return GateCheck(
        name="robot", state="pass", asked="passport and robot agree", found=f"{robot.spec.name}, all values"
    )


def timing_check(bundle: PolicyBundle) -> GateCheck:
    """Time of inference against the control period."""
    spec, nobs = bundle.passport.policy, bundle.passport.policy.observation.nactor
    median, p99 = (float(q) for q in np.quantile(inference_times(bundle.runner(1).act, nobs), (0.5, 0.99)))
    share = median * spec.control_hz
    late = p99 * spec.control_hz > OF_PERIOD  # may be the computer's load
    state: Literal["pass", "fail", "warn"] = "fail" if share > OF_PERIOD else "warn" if late else "pass"
    return GateCheck(
        name="inference",
        state=state,
        asked=f"takes at most {OF_PERIOD:.0%} of the control period on this computer; 99 % of the time, else a warning",
        found=f"{1e3 * median:.2f} ms, 99 % within {1e3 * p99:.2f} ms, of {1e3 / spec.control_hz:.0f} ms",
        value=share,
        remedy=""
        if state == "pass"
        else "a quiet computer, or a smaller net: trueup train --option net.actor=[128,64]",
    )


def margin_checks(results: Sequence[ScenarioResult]) -> Iterator[GateCheck]:
    """Observations within the training range, torques, heat and joint stops, in scenarios that were passed."""
    yield _bounded(results, "outside", OUTSIDE, "observations outside the training range", "train with wider ranges")
    yield _bounded(results, "at_limit", AT_LIMIT, "torques at the limit", "raise the cost of energy or torque")
    yield _bounded(results, "thermal", 1.0, "mean square torque over the continuous one", "raise the cost of torque")
    margins = [result.metrics["joint_margin"].low for result in results if "joint_margin" in result.metrics]
    least = min(margins, default=None)
    yield GateCheck(
        name="joint_margin",
        state="skipped" if least is None else "pass" if least > STOP_MARGIN else "warn",
        asked="joints keep away from their stops in nine of ten trials",
        found="not measured" if least is None else f"nearest {least:.1%} of the range away",
        value=least,
        remedy="" if least is None or least > STOP_MARGIN else "raise the weight of joint_limits",
    )


def _bounded(results: Sequence[ScenarioResult], key: str, most: float, what: str, mend: str) -> GateCheck:
    """The mean over trials of the worst scenario must not exceed a bound."""
    known = {result.name: mean for result in results if (mean := result.mean(key)) is not None}
    if not known:
        return GateCheck(name=key, state="skipped", asked=f"{what}: at most {most:g}", found="not measured")
    worst = max(known, key=lambda name: known[name])
    good = known[worst] <= most
    return GateCheck(
        name=key,
        state="pass" if good else "fail",
        asked=f"{what}: at most {most:g}",
        found=f"{known[worst]:.3g} in scenario {worst}",
        value=known[worst],
        remedy="" if good else mend,
    )


def engines_check(first: ScenarioResult, second: ScenarioResult) -> GateCheck:
    """Error of the same scenario in both engines."""
    a, b = first.mean("error") or 0.0, second.mean("error") or 0.0
    ratio = b / a if a > 0 else float("inf")
    good = abs(b - a) <= max(ENGINES_DIFFER * a, NEGLIGIBLE)
    return GateCheck(
        name="sim2sim",
        state="pass" if good else "warn",
        asked=f"error of {first.title} differs by at most {ENGINES_DIFFER:.0%} between engines",
        found=f"{a:.3f} in mujoco, {b:.3f} in sapien",
        value=ratio,
        remedy="" if good else "compare the scenario tables of both engines; docs/engines.md says what differs",
    )
