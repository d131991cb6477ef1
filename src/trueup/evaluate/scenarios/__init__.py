"""Scenarios as data: what a trial is, how numbers go with the size of a robot, and the suites that are shipped."""
