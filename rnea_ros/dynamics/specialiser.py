"""The recursion, run once on symbols: what is left is the straight-line code of one robot.

Run-time inputs are positions, velocities, accelerations and the vector that `links.Layout` describes; all else about
the robot becomes a constant of the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rnea_ros.dynamics.expression import Graph, Node, Program, program
from rnea_ros.dynamics.links import Layout, LinkSystem, friction_rows, joint_friction, rigid_body_torque
from rnea_ros.dynamics.newton_euler import Functions, Scalar
from rnea_ros.model.robot import RobotModel


def torque_program(system: LinkSystem) -> Program:
    """Rigid-body torque at all joints. Inputs are q0.., v0.., a0.. (position, velocity, acceleration) and p0.."""
    graph = Graph()
    q, qd, qdd = (_inputs(graph, letter, system.n) for letter in "qva")
    return _finish(graph, _rigid(graph, system, q, qd, qdd))


def drive_program(robot: RobotModel) -> Program:
    """Torque for armature and joint friction. Shares that a joint does not have cost no code."""
    graph = Graph()
    layout = Layout(robot.n)
    qd, qdd = _inputs(graph, "v", robot.n), _inputs(graph, "a", robot.n)
    p = _inputs(graph, "p", layout.size)
    present = friction_rows(robot.friction) != 0.0
    present[4:] = present[3]  # shift and slope matter where there is an amplitude
    torques: list[Scalar] = []
    for i in range(robot.n):
        armature = p[layout.armature][i] if robot.armature[i] != 0.0 else 0.0
        rows = [p[layout.joint(row + 1)][i] if present[row, i] else 0.0 for row in range(6)]
        friction = joint_friction(rows, qd[i], partial(_call, graph, "tanh"), partial(_call, graph, "sign"))
        torques.append(armature * qdd[i] + friction)
    return _finish(graph, torques)


def gravity_program(system: LinkSystem) -> Program:
    """Torque at rest without wrench: the same recursion with zeros for velocity, acceleration and wrench."""
    graph = Graph()
    zeros: list[Scalar] = [0.0] * system.n
    return _finish(graph, _rigid(graph, system, _inputs(graph, "q", system.n), zeros, zeros, wrench=False))


def _rigid(
    graph: Graph,
    system: LinkSystem,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    wrench: bool = True,
) -> list[Scalar]:
    layout = Layout(system.n)
    p = _inputs(graph, "p", layout.size)
    functions = Functions(partial(_call, graph, "sin"), partial(_call, graph, "cos"))
    tip = p[layout.tip] if system.tip is not None else None
    load = p[layout.wrench] if wrench and system.tip is not None else None
    return rigid_body_torque(system, q, qd, qdd, p[layout.gravity], load, tip, functions)


def _inputs(graph: Graph, letter: str, count: int) -> list[Scalar]:
    return [graph.input(f"{letter}{i}") for i in range(count)]


def _call(graph: Graph, function: str, argument: Scalar) -> Node:
    return graph.call(function, graph.node(argument))


def _finish(graph: Graph, torques: Sequence[Scalar]) -> Program:
    return program([graph.node(torque) for torque in torques])
