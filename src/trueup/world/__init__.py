"""Batched physics: N simulations on `mujoco.batch.Batch`, parameters by name, sensors, replay. Without torch."""
