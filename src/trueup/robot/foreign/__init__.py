"""The walls that a stranger's model file passes: bounded XML, confined files, mended URDF, guarded compilation."""
