"""Proof of policies: what evaluations and the gate print, and their pages."""
