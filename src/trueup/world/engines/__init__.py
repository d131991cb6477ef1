"""Interface of engines, the second engine (SAPIEN, PhysX 5) and a robot's URDF."""
