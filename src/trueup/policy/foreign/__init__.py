"""Foreign policies: their layout files and ONNX networks."""
