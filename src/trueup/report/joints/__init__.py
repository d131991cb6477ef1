"""Pages about joints: which limb each belongs to, how near each came to its limits, and traces in that order."""
