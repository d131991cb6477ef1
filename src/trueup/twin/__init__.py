"""The twin: a virtual robot with hidden physics, in a separate process, behind the same protocol as hardware."""
