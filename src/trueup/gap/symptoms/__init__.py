"""Symptoms of a policy on a robot: measured, with usual cause and the change of training that removes it."""
