"""LeRobot datasets (v2.0, v2.1, v3.0) as logs: what is in the folder, what its numbers mean, episodes as Logs."""
