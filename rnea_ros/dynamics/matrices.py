"""Matrices of the dynamics, column by column from the torque kernel: none of them is derived a second time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics.links import LinkSystem, rigid_body_torque, unpack_inertia
from rnea_ros.dynamics.recursion_backend import ARRAYS

Array = NDArray[np.float64]

CHUNK = 512  # states that a kernel sees at a time, so that memory stays bounded by inputs and results


class BatchKernel(Protocol):
    def batch(self, q: Array, qd: Array, qdd: Array, inputs: Array, out: Array) -> bool: ...


def mass_matrix(kernel: BatchKernel, q: Array, inputs: Array) -> Array:
    """M e_j = τ(q, 0, e_j) without gravity and wrench. (N, n, n) from (N, n)"""
    states, n = q.shape
    matrix = np.empty((states, n, n))
    unit = np.eye(n)
    for rows in _chunks(states, n):
        repeated = np.repeat(q[rows], n, axis=0)
        columns = _evaluate(kernel, repeated, np.zeros_like(repeated), np.tile(unit, (len(q[rows]), 1)), inputs)
        block = columns.reshape(-1, n, n)  # block[s, j] = M e_j
        matrix[rows] = 0.5 * (block + block.transpose(0, 2, 1))
    return matrix


def coriolis_matrix(kernel: BatchKernel, q: Array, qd: Array, inputs: Array) -> Array:
    """C e_j = ½ [c(q̇ + e_j) − c(q̇) − c(e_j)],   c(q̇) = τ(q, q̇, 0) without gravity and wrench. (N, n, n)

    c is quadratic, c(q̇) = Σ Γᵢⱼₖ q̇ⱼ q̇ₖ with Γ symmetric in j and k, so this polarisation is Σₖ Γᵢⱼₖ q̇ₖ: the matrix of
    the Christoffel symbols.
    """
    states, n = q.shape
    matrix = np.empty((states, n, n))
    unit = np.eye(n)
    for rows in _chunks(states, 2 * n + 1):
        count = len(q[rows])
        velocities = np.empty((count, 2 * n + 1, n))
        velocities[:, :n] = qd[rows, None, :] + unit
        velocities[:, n:-1] = unit
        velocities[:, -1] = qd[rows]
        repeated = np.repeat(q[rows], 2 * n + 1, axis=0)
        c = _evaluate(kernel, repeated, velocities.reshape(-1, n), np.zeros_like(repeated), inputs)
        c = c.reshape(count, 2 * n + 1, n)
        matrix[rows] = (0.5 * (c[:, :n] - c[:, n:-1] - c[:, -1:])).transpose(0, 2, 1)
    return matrix


def regressor(system: LinkSystem, q: Array, qd: Array, qdd: Array, gravity: Array) -> Array:
    """Columns are torques of the recursion for one parameter of one body set to 1 and all others to 0. (N, n, 10 B)"""
    states, n = q.shape
    bodies = len(system.links)
    parameters = np.zeros((bodies, 10, 10 * bodies))
    for body in range(bodies):
        parameters[body, :, 10 * body : 10 * body + 10] = _MOMENTS_FROM_STANDARD
    lanes = [replace(link, inertia=unpack_inertia(list(parameters[body]))) for body, link in enumerate(system.links)]
    expanded = replace(system, links=tuple(lanes))
    matrix = np.empty((states, n, 10 * bodies))
    for rows in _chunks(states, 10 * bodies):
        position, velocity, acceleration = ([x[rows, j : j + 1] for j in range(n)] for x in (q, qd, qdd))
        torques = rigid_body_torque(expanded, position, velocity, acceleration, gravity.tolist(), None, None, ARRAYS)
        for joint, torque in enumerate(torques):
            matrix[rows, joint] = torque
    return matrix


def _moments_from_standard() -> Array:
    """(10, 10): m, h, J from m, m c and I about the origin (J = ½ tr(I) 1 − I); orders of `pack_inertia` and of π."""
    matrix = np.zeros((10, 10))
    matrix[:4, :4] = np.eye(4)
    xx, xy, yy, xz, yz, zz = range(4, 10)
    diagonal = (xx, yy, zz)
    for row, own in zip((4, 7, 9), diagonal, strict=True):  # Jxx, Jyy, Jzz
        matrix[row, list(diagonal)] = 0.5
        matrix[row, own] -= 1.0
    for row, own in zip((5, 6, 8), (xy, xz, yz), strict=True):  # Jxy, Jxz, Jyz
        matrix[row, own] = -1.0
    return matrix


_MOMENTS_FROM_STANDARD = _moments_from_standard()


def _evaluate(kernel: BatchKernel, q: Array, qd: Array, qdd: Array, inputs: Array) -> Array:
    out = np.empty_like(q)
    kernel.batch(q, qd, qdd, inputs, out)
    return out


def _chunks(states: int, evaluations: int) -> Iterator[slice]:
    """Slices of states so that a slice needs about CHUNK evaluations."""
    step = max(1, CHUNK // evaluations)
    for start in range(0, states, step):
        yield slice(start, min(start + step, states))
