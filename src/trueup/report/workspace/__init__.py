"""The page of a workspace, and its server."""
