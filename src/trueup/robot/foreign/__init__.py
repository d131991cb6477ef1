"""Model files of other people: bounded XML, confined file access, repaired URDF, compilation in a guarded process."""
