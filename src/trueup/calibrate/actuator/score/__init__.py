"""One held-out score for every rung: horizons, long runs, closed loop."""
