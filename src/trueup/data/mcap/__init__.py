"""Logs and recordings of others as MCAP: container, ROS 2 messages, recovery."""
