"""From state to command, without a clock: controller, goal, monitors, ramps (NumPy)."""
