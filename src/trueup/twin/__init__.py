"""The twin: a virtual robot with hidden physics, in a process of its own, behind the same wire as hardware."""
