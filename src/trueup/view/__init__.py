"""A scene as pictures and films."""
