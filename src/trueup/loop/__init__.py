"""The whole loop in a workspace of artifacts: stages with their inputs, rounds, and what they came to."""
