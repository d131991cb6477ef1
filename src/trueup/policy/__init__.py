"""The contract between simulator and robot: observations, actions, history, normalisation, inference. NumPy alone."""
