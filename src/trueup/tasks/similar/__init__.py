"""A task for another robot by dynamic similarity: figures of both, laws between them, a task file of the user's own."""
