"""Uncertainty of a fit: covariance, profiles, valleys, verdicts, predictive check, alarms."""
