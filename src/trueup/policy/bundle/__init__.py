"""PolicyBundle: a policy that travels with its passport, its network and proof that both belong together."""
