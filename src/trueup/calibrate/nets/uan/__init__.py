"""UAN: an unsupervised actuator net, learned from motion without measured torque."""
