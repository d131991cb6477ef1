"""Recorded commands played in a batch that starts in recorded states, and the score of it."""
