"""From runs and from networks of others to bundles."""
