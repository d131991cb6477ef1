"""Policies of others: their written layouts, read as they are, and their ONNX networks."""
