"""What this computer can do: checks with advice, and how fast it steps and draws. `trueup doctor` prints them."""
