"""The live view as a user sees it: a real browser, a real socket, pixels of the robot."""

from contextlib import closing

import numpy as np
import pytest
from live_page import browser_tab, robot_mask, standing

from trueup.core.errors import TrueupError
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.train.live import LiveView

pytestmark = pytest.mark.medium


@pytest.mark.parametrize("task", ["go2-velocity"])
def test_the_robot_is_seen(task):
    with (
        closing(standing(task, 18300)) as view,
        browser_tab(view) as tab,
    ):  # not stepped: only the robot changes
        seen = robot_mask(view, tab)
        assert seen.sum() > 300, f"{seen.sum()} pixels of the robot"


def test_a_view_of_many_simulations_is_refused():
    env = make_env(load_task("pendulum-swingup"), EnvCfg(nenv=2, threads=1))
    with pytest.raises(TrueupError, match="one simulation, found 2"):
        LiveView(env, lambda obs: np.zeros((2, 1), np.float32))
