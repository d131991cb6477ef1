"""Pages of joints: the nearest to a limit first, limits drawn where they matter, the rest by limb and folded."""

import numpy as np
import pytest
from opened import opened

from trueup.report.joints.limbs import limb_of, limbs
from trueup.report.joints.overview import TraceKind, joint_sections, quantity, worst_first
from trueup.report.page import Page
from trueup.report.traces import joint_traces
from trueup.robot.load import load_robot

GO2 = load_robot("go2").spec
TIME = np.linspace(0.0, 2.0, 101)


def moved(**far: float) -> np.ndarray:
    """Joints swing by a tenth of a radian about their defaults; those that are named, so many radians away."""
    out = np.tile(GO2.default_pose, (len(TIME), 1)) + 0.1 * np.sin(5 * TIME)[:, None]
    for name, value in far.items():
        out[50, GO2.joint_names.index(name)] = value
    return out


@pytest.mark.parametrize(
    ("joint", "limb"),
    [
        ("FL_hip_joint", "FL leg"),
        ("left_knee_joint", "left leg"),
        ("right_wrist_yaw_joint", "right arm"),
        ("waist_yaw_joint", "waist"),
        ("LF_HAA", "LF leg"),
        ("shoulder_pan", ""),
        ("joint3", ""),
    ],
)
def test_a_limb_is_read_off_a_joints_name(joint: str, limb: str):
    assert limb_of(joint) == limb


@pytest.mark.parametrize("robot", ["go2", "g1", "so101", "z1"])
def test_every_joint_is_in_one_limb(robot: str):
    names = load_robot(robot).spec.joint_names
    found = limbs(names)
    assert sorted(k for members in found.values() for k in members) == list(range(len(names)))
    assert len(found) == {"go2": 4, "g1": 5}.get(robot, 1)


def test_the_joint_at_its_limit_comes_first():
    calf = GO2.joint_names.index("RR_calf_joint")
    shown = quantity("Positions", "rad", {"measured": moved(RR_calf_joint=GO2.position_low[calf])}, GO2)
    assert worst_first([shown], 12)[0] == calf
    assert shown.use[calf] == pytest.approx(1.0)
    np.testing.assert_allclose(quantity("Torques", "N m", {"t": np.zeros((5, 12))}, GO2).use, 0.0)


def test_without_a_spec_the_worst_is_farthest_from_its_command():
    measured, target = np.zeros((50, 3)), np.zeros((50, 3))
    measured[:, 1] = 0.2
    shown = TraceKind(title="Positions", unit="rad", traces={"measured": measured, "target": target})
    assert worst_first([shown], 3) == [1, 0, 2]


def test_a_limit_is_drawn_where_the_signal_comes_near_and_written_in_any_case():
    values, limits = np.stack([np.linspace(0.0, 1.0, 50)] * 2, axis=1), (np.array([-5.0, -5.0]), np.array([1.1, 9.0]))
    figure = joint_traces(np.arange(50.0), {"measured": values}, ["near", "far"], "rad", limits=limits)
    assert [(line.yref, line.y0) for line in figure.layout.shapes] == [("y", 1.1)]
    told = [note.text for note in figure.layout.annotations]
    assert "limits -5 to 1.1 rad" in told[0]
    assert "limits -5 to 9 rad" in told[1]


def test_the_rest_is_folded_by_leg_and_few_joints_are_not():
    page = Page("go2")
    joint_sections(page, TIME, GO2.joint_names, [quantity("Positions", "rad", {"measured": moved()}, GO2)])
    html = page.html()
    assert html.count("<details>") == 5  # the other joints of the table, and four legs
    assert "FL leg: FL_hip_joint, FL_thigh_joint, FL_calf_joint" in html
    few = Page("arm")
    so101 = load_robot("so101").spec
    still = np.tile(so101.default_pose, (20, 1))
    joint_sections(few, np.arange(20.0), so101.joint_names, [quantity("Positions", "rad", {"measured": still}, so101)])
    assert "<details>" not in few.html()


@pytest.mark.medium
def test_folded_plots_are_drawn_when_they_are_opened(tmp_path):
    page = Page("go2")
    joint_sections(page, TIME, GO2.joint_names, [quantity("Positions", "rad", {"measured": moved()}, GO2)])
    with opened(page.write(tmp_path / "page.html")) as tab:
        assert tab.evaluate("document.querySelectorAll('.plot').length") == 5
        assert tab.evaluate("document.querySelectorAll('.plot[data-drawn]').length") == 1
        tab.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
        while tab.evaluate("document.querySelectorAll('.plot:not([data-drawn])').length"):
            tab.wait_for_timeout(50)
        widths = tab.evaluate("[...document.querySelectorAll('.plot svg.main-svg')].map((s) => s.clientWidth)")
        assert min(widths) > 400
