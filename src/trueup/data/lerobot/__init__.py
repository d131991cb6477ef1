"""LeRobot datasets (v2.0, v2.1, v3.0) as logs: layout of the folder, units, episodes as Logs."""
