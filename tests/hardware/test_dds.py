"""DDS domains in one process: drivers of several kinds share one, and the last to leave takes it along."""

import time

import pytest
from ros2_robot import free_domain

from trueup.core.errors import TrueupError
from trueup.hardware.drivers import dds
from trueup.hardware.drivers.dds import DdsBus
from trueup.hardware.drivers.ros2.bus import RosBus
from trueup.hardware.drivers.ros2.messages import Bool


def test_a_unitree_robot_and_a_ros_robot_share_a_domain() -> None:
    domain = free_domain()
    unitree, ros = DdsBus("lo", domain, "unitree"), RosBus("lo", domain)
    heard, said = ros.inbox("/stop", Bool), unitree.outbox("rt/stop", Bool)
    end = time.monotonic() + 5.0
    while not (said.listeners and heard.senders) and time.monotonic() < end:
        time.sleep(0.01)
    said.send(Bool(data=True))
    assert heard.wait(5.0)
    assert [message.data for message in heard.take()] == [True]
    assert ros.topics()["rt/stop"].endswith("Bool_")
    unitree.close()
    unitree.close()
    assert domain in dds._domains
    ros.close()
    assert domain not in dds._domains


def test_a_domain_that_cannot_be_is_refused_and_nothing_stays() -> None:
    domain = free_domain()
    for place, number, words in (("no0", domain, "there are"), ("lo", 233, "between 0 and 232")):
        with pytest.raises(TrueupError, match=words):
            DdsBus(place, number, "unitree")
    chosen = RosBus("", domain)  # the interface is left to CycloneDDS
    with pytest.raises(TrueupError, match="lo needs another domain"):
        DdsBus("lo", domain, "unitree")
    chosen.close()
    assert not {domain, 233} & set(dds._domains)
