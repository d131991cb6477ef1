"""One run on a robot: the loop, the operator's controls, the recording."""
