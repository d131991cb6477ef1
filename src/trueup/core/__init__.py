"""Shared by all folders: errors, random numbers by row, atomic files. Imports nothing of robots."""
