"""What torque to send: laws, trajectory sampling, limits and the supervisor, driven by explicit time; no ROS."""
