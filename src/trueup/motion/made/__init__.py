"""Motions of our own making: feet and centre of mass are drawn, leg joints follow by inverse kinematics."""
