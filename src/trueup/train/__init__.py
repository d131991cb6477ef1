"""Simulator to policy: runs, checkpoints, resuming, assessment, films, other people's learners."""
