"""What every folder may use: errors, random numbers by row, atomic files. Knows nothing of robots."""
