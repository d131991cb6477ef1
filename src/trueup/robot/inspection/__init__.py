"""What a robot is made of and what is wrong with it: numbers, and lints that name them."""
