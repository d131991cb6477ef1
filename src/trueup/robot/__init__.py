"""What a robot is and how to talk to it: spec, model file, inspection, drivers, timed loop, excitation.

`spec` and `load` know no engine, so that the robot's own computer can use them; `model` and `inspect` need MuJoCo.
"""
