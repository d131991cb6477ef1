"""What every stage of the loop takes, runs and leaves behind."""
