"""Policies in worlds: one evaluation loop, and environments for policies that were trained elsewhere."""
