"""Untrusted model files: bounded XML, confined file access, repaired URDF, compilation in a guarded process."""
