"""PolicyBundle: a policy with its passport, its network and golden sequences that bind both."""
