"""Small experiments with known answers in both engines, to distinguish differences from bugs."""
