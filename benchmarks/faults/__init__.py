"""Faults between a policy and its robot: a relay that injects them, a twin that notes what reached its motors."""
