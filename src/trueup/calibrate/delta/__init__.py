"""Delta action (ASAP): the correction of a policy's targets that aligns a simulator with what a robot did."""
