"""Pages about joints: their limbs, their use of the limits, and traces in that order."""
