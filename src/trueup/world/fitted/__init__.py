"""What a calibration hands on: SimParams and params.json, the writer into a simulation, posterior draws."""
