"""Policies in worlds: one evaluation loop on simulations and on robots behind drivers."""
