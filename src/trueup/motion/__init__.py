"""Reference motions: one format for all sources, their kinematics, the check, and motions of our own making."""
