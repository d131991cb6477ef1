"""Active excitation: the motion that would best show what an earlier calibration could not tell."""
