"""The fit: residuals of batched rollouts, their derivatives, descent and search."""
