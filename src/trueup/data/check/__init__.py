"""The validator: every check on a log, and what each finding means."""
