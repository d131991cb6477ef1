"""Readers of other people's motion files: CSV, pickles, BVH, npz."""
