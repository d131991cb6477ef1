"""Scene: robots, objects, links, cameras and ground that are simulated and filmed."""
