"""The ladder from replay to full speed: rungs, their records, replay and shadow."""
