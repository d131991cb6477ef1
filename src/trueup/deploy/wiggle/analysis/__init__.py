"""Analysis of the wiggle test: answers, stops, gravity and IMU, and the conclusion from them."""
