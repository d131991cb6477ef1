"""Tasks: what a robot should learn, and the environment that runs many copies of it."""
