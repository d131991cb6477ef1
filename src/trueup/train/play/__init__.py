"""Policies that run: frozen, assessed, measured, watched; those of others too."""
