"""How a joint is driven: PD, torque-speed envelope, friction, DC motor, delay. Equations, no simulator."""
