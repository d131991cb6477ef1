"""Where simulator and robot differ, why, and what to fit next: windows, hypotheses and their search."""
