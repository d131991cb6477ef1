"""Domain randomisation: distributions, randomised parameters, and growing ranges (ADR)."""
