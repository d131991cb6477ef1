"""What engines have in common, the second engine (SAPIEN, PhysX 5) and a robot's URDF."""
