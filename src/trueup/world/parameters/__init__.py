"""Parameters of a simulation by name: what they are and how they reach the engine."""
