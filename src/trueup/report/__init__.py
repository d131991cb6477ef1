"""What people see: HTML pages that open offline, traces to zoom into, and what the terminal prints.

Sits above everything that computes; nothing below imports it.
"""
