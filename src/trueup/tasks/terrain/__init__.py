"""Ground that is not flat: heights around each robot, and the curriculum over its rows."""
