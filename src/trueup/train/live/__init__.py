"""Live pages: a model in a browser, and a policy in real time, seen and steered."""
