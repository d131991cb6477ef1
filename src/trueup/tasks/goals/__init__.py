"""Goals: what is asked of a policy. One module each; nothing outside knows that velocities exist."""
