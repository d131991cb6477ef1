"""Domain randomisation: distributions, what they act on, and ranges that grow (ADR)."""
