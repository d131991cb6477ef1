"""Learning algorithms that know no simulator: PPO, SAC, distillation, networks, running statistics."""
