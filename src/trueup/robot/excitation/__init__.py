"""Motions that show the joints' physics: shapes, limits, and plans on a clock. Pure numbers."""
