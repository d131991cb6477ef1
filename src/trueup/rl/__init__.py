"""Learning algorithms that know no simulator: PPO, distillation, networks, running statistics."""
