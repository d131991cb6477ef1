"""Unitree's calls over DDS: a request on rt/api/SERVICE/request, its answer on .../response.

A request carries an id, the number of the function (`api_id`) and parameters as JSON text; the answer repeats the id
and carries a code (0: done) and JSON text.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.dds import DdsBus

NOT_IMPLEMENTED = 3203  # the code of a function that a service does not have
_AGAIN_S = 0.25  # between repetitions: the other side may not have discovered us yet


class ServiceReply(NamedTuple):
    """A service's answer."""

    code: int
    data: str


class Client:
    """Calls one service."""

    def __init__(self, bus: DdsBus, service: str) -> None:
        api = api_types()
        self._service, self._place, self._api = service, bus.place, api
        self._requests = bus.outbox(f"rt/api/{service}/request", api["Request_"])
        self._answers = bus.inbox(f"rt/api/{service}/response", api["Response_"])

    def call(self, api_id: int, parameter: str = "{}", *, timeout_s: float) -> ServiceReply:
        """Send a request until it is answered; all functions are idempotent."""
        end, ids = time.monotonic() + timeout_s, set()
        while (left := end - time.monotonic()) > 0.0:
            number = time.monotonic_ns()
            ids.add(number)
            self._requests.send(self._request(number, api_id, parameter))
            again = time.monotonic() + min(left, _AGAIN_S)
            while (left := again - time.monotonic()) > 0.0:
                self._answers.wait(left)
                for answer in self._answers.take():
                    if answer.header.identity.id in ids:
                        return ServiceReply(int(answer.header.status.code), str(answer.data))
        raise TrueupError(
            f"the robot's service {self._service!r} did not answer within {timeout_s:g} s on {self._place}"
        )

    def _request(self, number: int, api_id: int, parameter: str) -> Any:
        api = self._api
        identity = api["RequestIdentity_"](id=number, api_id=api_id)
        policy = api["RequestPolicy_"](priority=0, noreply=False)
        header = api["RequestHeader_"](identity=identity, lease=api["RequestLease_"](id=0), policy=policy)
        return api["Request_"](header=header, parameter=parameter, binary=[])


class Service:
    """Answers calls, as a robot's computer does; `answer(api_id, parameter)` returns a `ServiceReply`."""

    def __init__(self, bus: DdsBus, service: str, answer: Callable[[int, str], ServiceReply]) -> None:
        self._api, self._answer = api_types(), answer
        self.requests = bus.inbox(f"rt/api/{service}/request", self._api["Request_"])
        self._answers = bus.outbox(f"rt/api/{service}/response", self._api["Response_"])

    def serve(self) -> None:
        """Answer the requests since the last call."""
        api = self._api
        for request in self.requests.take():
            code, data = self._answer(int(request.header.identity.api_id), request.parameter)
            status = api["ResponseStatus_"](code=code)
            header = api["ResponseHeader_"](identity=request.header.identity, status=status)
            if not request.header.policy.noreply:
                self._answers.send(api["Response_"](header=header, data=data, binary=[]))


@functools.cache
def api_types() -> dict[str, type[Any]]:
    """IDL types of package unitree_api, by their short names. Needs cyclonedds."""
    from cyclonedds.idl import make_idl_struct
    from cyclonedds.idl import types as idl_types

    types: Any = idl_types  # sequence types are built by indexing, which type checkers do not follow
    made: dict[str, type[Any]] = {}

    def struct(name: str, **fields: Any) -> None:
        made[name] = make_idl_struct(name, f"unitree_api.msg.dds_.{name}", fields)

    struct("RequestIdentity_", id=types.int64, api_id=types.int64)
    struct("RequestLease_", id=types.int64)
    struct("RequestPolicy_", priority=types.int32, noreply=bool)
    identity, octets = made["RequestIdentity_"], types.sequence[types.uint8]
    struct("RequestHeader_", identity=identity, lease=made["RequestLease_"], policy=made["RequestPolicy_"])
    struct("Request_", header=made["RequestHeader_"], parameter=str, binary=octets)
    struct("ResponseStatus_", code=types.int32)
    struct("ResponseHeader_", identity=identity, status=made["ResponseStatus_"])
    struct("Response_", header=made["ResponseHeader_"], data=str, binary=octets)
    return made
