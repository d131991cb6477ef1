"""From a log to a simulator that fits: parameters, residuals, fit, uncertainty, result."""
