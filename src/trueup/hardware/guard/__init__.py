"""The motor guard: a process of its own between a policy and a robot's driver, and the `Driver` that talks to it."""
