"""Networks with written-out derivatives, and their parameters as named arrays."""
