"""Unitree robots (go2, b2, g1) over DDS: their messages, checksums, motor numbers, and the driver."""
