"""Which shapes of a robot are shown: its visual geoms where it has any, its collision geoms elsewhere.

Models keep visual and collision geoms in groups of their author's choice, and viewers hide some groups. Whatever is to
be looked at is moved to `SHOWN`, the rest to `HIDDEN`: every viewer then agrees with its default settings.
"""

from __future__ import annotations

import mujoco

SHOWN, HIDDEN = 2, 3  # MuJoCo and mjviser show groups 0 to 2
_SHOWN_BY_DEFAULT = frozenset(range(3))


def show_visuals(spec: mujoco.MjSpec) -> None:
    """Sort the robot's geoms into `SHOWN` and `HIDDEN`; call it before collisions are simplified.

    A geom that can touch nothing is visual. Where some visual geoms are in groups that viewers show, those in other
    groups are taken to be hidden on purpose. A body without visual geoms shows its collision geoms; a collision geom in
    the same group as visual ones is shown too (simple models draw with both).
    """
    bodies = [body for body in spec.bodies if body.name != spec.worldbody.name]
    groups = {geom.group for body in bodies for geom in body.geoms if _is_visual(geom)}
    groups = groups & _SHOWN_BY_DEFAULT or groups
    for body in bodies:
        geoms = list(body.geoms)
        has_visual = any(_is_visual(geom) and geom.group in groups for geom in geoms)
        for geom in geoms:
            shown = geom.group in groups if has_visual else _collides(geom)
            geom.group = SHOWN if shown else HIDDEN


def _is_visual(geom: mujoco.MjsGeom) -> bool:
    return not _collides(geom) and geom.rgba[3] > 0


def _collides(geom: mujoco.MjsGeom) -> bool:
    return bool(geom.contype or geom.conaffinity)
