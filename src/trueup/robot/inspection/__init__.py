"""Inspection of a robot: its numbers, and lints on them."""
