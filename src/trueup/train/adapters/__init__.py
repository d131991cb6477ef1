"""The environments for other learners: rsl_rl and Stable-Baselines3."""
