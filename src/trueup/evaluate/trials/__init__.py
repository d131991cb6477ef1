"""Trials of a scenario in one batch: ground, parameters, disturbances and measurements."""
