"""The recursion run on floats, with every vector kept; and the potential energy that its gravity belongs to."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics.links import LinkSystem, friction_torque, joint_states, link_system, tip_wrench
from rnea_ros.dynamics.newton_euler import CentredInertia, first_moment, newton_euler, place
from rnea_ros.dynamics.recursion_backend import ARRAYS, FLOATS
from rnea_ros.dynamics.results import LinkTrace, Trace
from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]


def trace(robot: RobotModel, q: Array, qd: Array, qdd: Array, gravity: Array, wrench: Array | None) -> Trace:
    """One run for one state (n,), gravity (3,) and the wrench (6,) on the tip body or None."""
    system = link_system(robot)
    wrenches = {} if wrench is None or system.tip is None else {system.tip: tip_wrench(system, wrench.tolist())}
    joints = joint_states(system, q.tolist(), qd.tolist(), qdd.tolist())
    gx, gy, gz = gravity.tolist()
    sweep = newton_euler(system.links, joints, (gx, gy, gz), FLOATS, wrenches)

    links: dict[str, LinkTrace] = {}
    torque = robot.armature * qdd + friction_torque(robot.friction, qd)
    for index, (body, link, motion) in enumerate(zip(robot.bodies, system.links, sweep.motions, strict=True)):
        inertia = link.inertia
        assert isinstance(inertia, CentredInertia)
        links[body.name] = LinkTrace(
            omega=np.array(motion.omega),
            alpha=np.array(motion.alpha),
            v=np.array(motion.v),
            a=np.array(motion.a),
            v_com=np.array(inertia.com_velocity(motion)),
            a_com=np.array(inertia.com_acceleration(motion)),
            force=np.array(inertia.force_at_com(motion)),
            moment=np.array(inertia.moment_at_com(motion)),
            joint_force=np.array(sweep.forces[index]),
            joint_moment=np.array(sweep.moments[index]),
            joint_torque=float(sweep.torques[index]),
        )
        torque[body.joint] += body.ratio * sweep.torques[index]
    return Trace(MappingProxyType(links), torque)


def potential_energy(system: LinkSystem, q: Array, gravity: Array) -> Array:
    """V = −g · Σ mᵢ p_Cᵢ, for q (n,) a scalar array, for (N, n) one value per state, J."""
    coordinates = list(q.T)
    joints = joint_states(system, coordinates, coordinates, coordinates)
    placements = [place(link, joint.position, ARRAYS) for link, joint in zip(system.links, joints, strict=True)]
    moment = first_moment(system.links, placements)
    energy = np.zeros(q.shape[:-1])
    for g, h in zip(gravity.tolist(), moment, strict=True):
        energy = energy - g * h
    return energy
