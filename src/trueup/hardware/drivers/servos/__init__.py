"""Position servos on a serial line: Feetech STS (SO-101) and Dynamixel X series."""
