"""rnea_ros: torque from a robot description, by the recursive Newton-Euler algorithm.

    from rnea_ros import load_urdf, InverseDynamics
    robot = load_urdf("panda.urdf")
    tau = InverseDynamics(robot).torque(q, qd, qdd)

Importing this package needs no ROS.
"""

from rnea_ros.dynamics.inverse_dynamics import InverseDynamics
from rnea_ros.model.dh import load_dh
from rnea_ros.model.kinematics import frame, jacobian
from rnea_ros.model.robot import RobotModel
from rnea_ros.model.urdf import load_urdf

__all__ = ["InverseDynamics", "RobotModel", "frame", "jacobian", "load_dh", "load_urdf"]
__version__ = "0.1.0"
