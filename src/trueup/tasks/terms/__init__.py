"""Terms of tasks: rewards, terminations and red flags, and what they are computed from."""
