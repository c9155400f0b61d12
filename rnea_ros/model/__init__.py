"""What the robot is: an immutable model from URDF, xacro or a modified-DH table, and its kinematics."""
