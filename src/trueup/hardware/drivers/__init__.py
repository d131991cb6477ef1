"""Drivers: one module for each kind of hardware, and the twin."""
