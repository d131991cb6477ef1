"""Drafts a spec for a bare model file: facts of the file, marked guesses, and a robot folder."""
