"""Results of a calibration for other stages: SimParams, params.json, their writer to a simulation, posterior draws."""
