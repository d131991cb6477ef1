"""From key points of a body to the joints of a robot: scaling, contacts, inverse kinematics, interaction mesh."""
