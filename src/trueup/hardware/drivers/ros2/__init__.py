"""ROS 2 topics over DDS without a ROS installation: message types, the DDS side, names and numbers, the driver."""
