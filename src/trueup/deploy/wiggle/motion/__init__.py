"""Motion of the wiggle test: bounded moves, sweeps, the programme, and what was measured."""
