"""A spec for a stranger's model file: what the file says, what is guessed, and the folder that holds both."""
