"""Logs prepared for a fit: cut at gaps and gain steps, in windows, with noise levels and a held-out part."""
