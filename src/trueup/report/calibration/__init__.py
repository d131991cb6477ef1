"""Output of calibrations and actuator ladders: tables, pages, plots."""
