"""Small experiments with known answers in both engines, so that a difference can be told from a bug."""
