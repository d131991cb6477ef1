"""Scenarios as data: definition of a trial, scaling with a robot's size, and shipped suites."""
