"""The verbs of the command line: one module each, with its config and what it prints."""
