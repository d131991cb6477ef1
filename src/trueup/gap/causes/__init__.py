"""Possible causes: changes of parameters, of the log and of the policy's side, and how each is tested."""
