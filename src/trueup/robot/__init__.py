"""Robots: spec, model file, inspection, excitation.

`spec` and `load` import no engine, so that the robot's own computer can use them; `model` and `inspection` need MuJoCo.
"""
