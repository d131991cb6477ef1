"""Batched physics: N simulations of one robot on `mujoco.batch.Batch`, parameters by name, sensors, replay, films.

Knows no learner (no torch) and no stage. The hidden physics of twins lives here too.
"""
