"""What was measured: Log, readers and writers, validator, resampling. Knows no simulator and no robot."""
