"""A MuJoCo arm that speaks ros2_control's language; no ROS, no clock of its own."""
