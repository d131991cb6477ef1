"""Trials of a scenario in one batch: their ground, parameters and disturbances, and what is measured of each."""
