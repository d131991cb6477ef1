"""What is hidden in a twin: presets, what is drawn from them, and the sealed file that holds it."""
