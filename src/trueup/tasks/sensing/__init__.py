"""What environments sense: signals, the frame that holds them, feet, left and right."""
