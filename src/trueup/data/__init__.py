"""Measured data: Log, readers and writers, validator, resampling. Imports no simulator and no robot."""
