"""What the data say: uncertainty, profiles, valleys, verdicts, predictive check, alarms."""
