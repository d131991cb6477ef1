"""Our logs and foreign recordings as MCAP: container, ROS 2 messages, recovery."""
