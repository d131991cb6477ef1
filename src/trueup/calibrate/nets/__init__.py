"""Learned corrections of the actuator: supervised nets, and UAN in `uan/`."""
