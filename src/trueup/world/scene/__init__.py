"""Scene: what is simulated and filmed: robots, objects, links, cameras, ground."""
