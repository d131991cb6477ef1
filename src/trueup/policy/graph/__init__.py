"""Networks as ONNX files, read, run and written with NumPy alone: a robot needs neither onnx nor onnxruntime."""
