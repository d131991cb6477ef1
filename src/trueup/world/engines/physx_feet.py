"""Feet and trunk in PhysX: read from links and contacts when somebody asks, once per step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.world.engines.foot_sensors import soles
from trueup.world.engines.physx_motion import turned

if TYPE_CHECKING:
    from trueup.world.engines.sapien_sim import SapienSim

Rows = slice | NDArray[np.intp]


class PhysxFeet:
    """What `FootPlaces` asks for. A contact counts when it carries force: PhysX looks ahead of touching."""

    def __init__(self, sim: SapienSim) -> None:
        model, feet = sim.model, sim.robot.spec.feet if sim.free_base else ()
        geoms = [model.geom(name).id for name in feet]
        self.sole = soles(model, feet, sim.default_qpos)
        self._system, self._places, self._count = sim.physx.system, sim.physx.places, len(feet)
        rows = sim.physx.rows
        bodies = [int(model.geom_bodyid[geom]) for geom in geoms]
        self._links = [[row.links[body] for body in bodies] for row in rows]
        self._local = model.geom_pos[geoms] if geoms else np.zeros((0, 3))
        self._centre = model.body_ipos[bodies] if geoms else np.zeros((0, 3))
        standing = {int(model.body_weldid[body]): foot for foot, body in enumerate(bodies)}
        named = [model.geom(name).id for name in sim.robot.spec.contact_geoms] if feet else []
        # every point of a sole is its foot's; what is fixed to no foot is the trunk
        slots = {geom: standing.get(int(model.body_weldid[model.geom_bodyid[geom]]), len(geoms)) for geom in named}
        slots |= {geom: foot for foot, geom in enumerate(geoms)}
        self._slot = {row.shapes[geom]: (k, slot) for k, row in enumerate(rows) for geom, slot in slots.items()}
        self._touches: NDArray[np.bool_] | None = None
        self._state: NDArray[Any] | None = None

    def forget(self) -> None:
        """The state has changed."""
        self._touches = self._state = None

    def contact(self, rows: Rows) -> NDArray[np.bool_]:
        return self._contacts()[rows, : self._count]

    def trunk_contact(self, rows: Rows) -> NDArray[np.bool_]:
        return self._contacts()[rows, self._count]

    def position(self, rows: Rows) -> tuple[NDArray[Any], ...]:
        place = self._moving()[rows, :, :3]
        return place[..., 0], place[..., 1], place[..., 2]

    def velocity(self, rows: Rows) -> NDArray[np.float32]:
        return self._moving()[rows, :, 3:].astype(np.float32)

    def _contacts(self) -> NDArray[np.bool_]:
        if self._touches is None:
            self._touches = np.zeros((len(self._links), self._count + 1), np.bool_)
            for contact in self._system.get_contacts():
                first, other = contact.shapes
                at = self._slot.get(first) or self._slot.get(other)
                if at is not None and any(point.impulse.any() for point in contact.points):
                    self._touches[at] = True
        return self._touches

    def _moving(self) -> NDArray[Any]:
        """Places and velocities (nsim, nfoot, 6)."""
        if self._state is None:
            raw = np.zeros((len(self._links), self._count, 13))
            for values, links in zip(raw, self._links, strict=True):
                for out, link in zip(values, links, strict=True):
                    pose = link.entity_pose
                    out[:3], out[3:7] = pose.p, pose.q
                    out[7:10], out[10:] = link.linear_velocity, link.angular_velocity
            quat = raw[..., 3:7]
            place = raw[..., :3] + turned(quat, np.broadcast_to(self._local, raw[..., :3].shape))
            arm = turned(quat, np.broadcast_to(self._local - self._centre, raw[..., :3].shape))
            speed = raw[..., 7:10] + np.cross(raw[..., 10:], arm)
            self._state = np.concatenate([place - self._places[:, None], speed], axis=-1)
        return self._state
