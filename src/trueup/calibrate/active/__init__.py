"""Active excitation: the motion that best identifies the weak parameters of an earlier calibration."""
