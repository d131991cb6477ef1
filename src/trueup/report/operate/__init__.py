"""Robots in operation: the wiggle test on the terminal, a run as a live page."""
