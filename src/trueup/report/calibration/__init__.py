"""What calibrations and actuator ladders show: tables, pages, plots."""
