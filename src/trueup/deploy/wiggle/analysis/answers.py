"""Which joint answered when a joint was moved: swaps, signs and dead joints between commands and readings."""

from __future__ import annotations

import numpy as np

from trueup.deploy.wiggle.analysis.finding import WiringFinding
from trueup.deploy.wiggle.motion.trace import Trace, WiggleAnswer
from trueup.robot.spec import RobotSpec


def answer_findings(spec: RobotSpec, trace: Trace, *, settled: bool = True) -> list[WiringFinding]:
    """What the wiggles (or the pulses after joints departed) say is wrong, swaps first; `settled`: all were made."""
    answers = trace.answers or trace.pulses
    swaps: list[tuple[int, int]] = []
    found: list[WiringFinding] = []
    for j, answer in answers.items():
        who = answering(answer)
        if who is None:
            found.append(_dead(spec, j, answer))
        elif who != j:
            swaps.append((j, who))
        elif answer.moved[j] < 0.0:
            found.append(
                WiringFinding(
                    kind="sign",
                    joints=(spec.joint_names[j],),
                    text=f"{spec.joint_names[j]} moves against its command: {answer.moved[j]:+.3f} rad where "
                    f"{answer.asked:+.3f} rad were asked; commands and readings have opposite signs",
                )
            )
    return [*_swaps(spec, swaps), *found] or (_departed(spec, trace) if settled else [])


def answering(answer: WiggleAnswer) -> int | None:
    """The joint that moved: the commanded one unless another moved much more; None if none did."""
    moved = np.abs(answer.moved)
    who = int(np.argmax(moved))
    if moved[who] < 0.25 * min(answer.asked, 0.08 * answer.sides):
        return None
    return who


def _swaps(spec: RobotSpec, swaps: list[tuple[int, int]]) -> list[WiringFinding]:
    found, told = [], set()
    mutual = {j for j, who in swaps if (who, j) in swaps}
    for j, who in swaps:
        pair = frozenset((j, who))
        if pair in told or (who in mutual and j not in mutual):  # a neighbour of swapped joints, moved along
            continue
        told.add(pair)
        names = tuple(spec.joint_names[k] for k in sorted(pair))
        both = (who, j) in swaps
        text = f"{spec.joint_names[j]} was moved and {spec.joint_names[who]} answered"
        text += ", and the other way round: their order is swapped" if both else ": the order of joints is wrong"
        found.append(WiringFinding(kind="swap", joints=names, text=f"{text} between commands and readings"))
    return found


def _dead(spec: RobotSpec, j: int, answer: WiggleAnswer) -> WiringFinding:
    name = spec.joint_names[j]
    return WiringFinding(
        kind="dead",
        joints=(name,),
        text=f"{name} does not answer: asked for {answer.asked:.3f} rad, no joint moved more than "
        f"{np.abs(answer.moved).max():.3f} rad; is its motor enabled, its encoder connected, the joint free?",
    )


def _departed(spec: RobotSpec, trace: Trace) -> list[WiringFinding]:
    """Joints that left their place though every pulse was answered by the right joint: readings are shifted."""
    if trace.departed is None:
        return []
    worst = np.flatnonzero(np.abs(trace.departed) > 0.5 * np.abs(trace.departed).max())
    names = tuple(spec.joint_names[j] for j in worst)
    moved = ", ".join(f"{spec.joint_names[j]} {trace.departed[j]:+.2f} rad" for j in worst)
    text = f"told to hold their place, joints left it ({moved}): readings and commands have different zeros"
    return [WiringFinding(kind="offset", joints=names, text=text)]
