"""Actuators: the engine's own, and models that run between physics steps."""
