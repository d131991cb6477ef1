"""The page of a training run: its parts, and runs side by side."""
