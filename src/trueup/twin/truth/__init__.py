"""The hidden truth of a twin: presets, draws from them, and the sealed file."""
