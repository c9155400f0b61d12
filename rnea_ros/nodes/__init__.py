"""How ROS sees it: thin nodes around control/ and simulation/. The only room that imports rclpy."""
