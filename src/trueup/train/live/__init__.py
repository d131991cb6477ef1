"""The live page: a policy in real time in a browser, seen and steered."""
