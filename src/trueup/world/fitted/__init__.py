"""Results of a calibration for other stages: SimParams, params.json, their writer into a simulation, posterior draws."""
