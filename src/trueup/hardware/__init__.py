"""How to talk to a robot: one interface, one module per kind of hardware (and one for the twin). No engine here."""
