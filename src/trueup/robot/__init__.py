"""What a robot is: spec, model file, inspection, excitation.

`spec` and `load` know no engine, so that the robot's own computer can use them; `model` and `inspection` need MuJoCo.
"""
