"""Goals: what is asked of a policy."""
