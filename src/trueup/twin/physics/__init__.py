"""The hidden physics of twins: motors, friction, hysteresis, and the engine model they act on."""
