"""The live view as a user sees it: a real browser, a real socket, pixels of the robot."""

from contextlib import closing

import numpy as np
import pytest
from live_page import browser_tab, pixels, robot_mask, running, standing, wait

from trueup.core.errors import TrueupError
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.train.live.live import LiveView

pytestmark = pytest.mark.medium


# Views that are not stepped: in the picture only what the test does can change.
@pytest.mark.parametrize("task", ["go2-velocity", "pendulum-swingup"])
def test_the_robot_is_seen_and_near(task):
    with closing(standing(task, 18300)) as view, browser_tab(view) as tab:
        seen = robot_mask(view, tab)
        assert seen.mean() > 0.01, f"{seen.sum()} of {seen.size} pixels"


def test_keys_move_the_sliders_and_leave_the_camera():
    with closing(standing("go2-velocity", 18310)) as view, browser_tab(view) as tab:
        before = pixels(tab)
        for key in "wwwsadaeee":
            tab.keyboard.press(key)
        wait(lambda: np.allclose(view.steering.command, [0.2, -0.3, 0.1]))
        numbers = tab.get_by_role("textbox")
        wait(lambda: [float(numbers.nth(k).input_value()) for k in range(3)] == [0.2, -0.3, 0.1])
        np.testing.assert_array_equal(pixels(tab), before)
        tab.get_by_text("Push", exact=True).click()
        tab.keyboard.press("Space")  # stops, and does not press the button again
        wait(lambda: not view.steering.command.any())
        tab.keyboard.press("r")
        wait(lambda: view.requests.restarts == 1)
        assert view.requests.pushes == 1
        tab.keyboard.press("p")
        wait(lambda: view.requests.pushes == 2)


def test_asked_and_measured_velocities_are_on_the_page():
    with closing(standing("go2-velocity", 18320)) as view, browser_tab(view) as tab:
        view.steering.sliders[0].value = 0.35
        for velocity, shown in (([0.0, 0.0, 0.0], "0.00"), ([0.3, 0.0, 0.0], "0.30"), ([-0.25, 0.0, 0.0], "-0.25")):
            view.steering.measure(np.array(velocity), 10.0)
            view.steering.show()
            tab.get_by_role("row", name=f"forward, m/s 0.35 {shown}", exact=True).wait_for(timeout=60_000)


def test_a_running_view_measures_and_shows_the_velocity():
    with running(standing("go2-velocity", 18330)) as view:
        wait(lambda: "measured" in view.steering._readout.content)
        before = view.steering._readout.content
        view.requests.pushes += 1
        wait(lambda: view.steering._readout.content != before)
        assert view.pushed == 1


def test_a_slider_is_what_the_policy_is_asked():
    with closing(standing("go2-velocity", 18340)) as view:
        view.steering.nudge(0, 1)
        view.steering.nudge(2, -1)
        view.step()
        np.testing.assert_allclose(view.env.frame.asked[0], [0.1, 0.0, -0.1])
        for _ in range(50):
            view.steering.nudge(1, 1)
        assert view.steering.command[1] == view.steering.sliders[1].max
        view.steering.stop()
        view.step()
        assert not view.env.frame.asked.any()


def test_the_measured_velocity_is_a_mean_in_the_frame_of_the_base():
    with closing(standing("go2-velocity", 18350)) as view:
        for _ in range(200):
            view.steering.measure(np.array([0.5, -0.2, 1.0]), 0.02)
            view.steering.measure(np.array([0.7, 0.2, 1.0]), 0.02)
        view.steering.show()
        shown = view.steering._readout.content
        cells = [part.split("</td>")[0] for part in shown.split('tabular-nums">')[1:]]
        assert cells == ["asked", "measured", "0.00", "0.60", "0.00", "0.00", "0.00", "1.00"]


def test_the_view_follows_a_walking_robot_unless_told_not_to():
    with closing(standing("go2-velocity", 18350)) as view:
        follow, data = view.follow, view.data
        data.xpos[:] = 0.0
        start = follow.shift(data).copy()
        data.xpos[1] = -start + [0.5, 0.0, 0.0]
        first = follow.shift(data).copy()
        assert 0.0 < start[0] - first[0] < 0.5
        for _ in range(200):
            last = follow.shift(data).copy()
        np.testing.assert_allclose(last, -data.xpos[1], atol=1e-3)
        follow._box.value = False
        data.xpos[1] += [5.0, 0.0, 0.0]
        np.testing.assert_array_equal(follow.shift(data), last)
        follow._box.value = True
        np.testing.assert_allclose(follow.shift(data), -data.xpos[1])


def test_a_view_of_many_simulations_is_refused():
    env = make_env(load_task("pendulum-swingup"), EnvCfg(nenv=2, threads=1))
    with pytest.raises(TrueupError, match="one simulation, found 2"):
        LiveView(env, lambda obs: np.zeros((2, 1), np.float32))
