"""Planar 2R arms of the reference documents, as URDF text: axes z, links along x, gravity along −y."""

from __future__ import annotations

import numpy as np

from rnea_ros import InverseDynamics, load_urdf

GRAVITY = (0.0, -9.81, 0.0)


def planar_arm(
    masses: tuple[float, float],
    lengths: tuple[float, float],
    centres: tuple[float, float],
    inertias: tuple[float, float],
    gravity: tuple[float, float, float] = GRAVITY,
) -> InverseDynamics:
    """centres: distance of the centre of mass from the joint, m; inertias: about the centre of mass and z, kg m²."""
    links = "".join(
        f'<link name="link{i}"><inertial><origin xyz="{c!r} 0 0"/><mass value="{m!r}"/>'
        f'<inertia ixx="{0.5 * j!r}" ixy="0" ixz="0" iyy="{0.5 * j!r}" iyz="0" izz="{j!r}"/></inertial></link>'
        f'<joint name="joint{i}" type="continuous"><origin xyz="{x!r} 0 0"/><parent link="{parent}"/>'
        f'<child link="link{i}"/><axis xyz="0 0 1"/><limit effort="100" velocity="10"/></joint>'
        for i, m, c, j, x, parent in zip(
            (1, 2), masses, centres, inertias, (0.0, lengths[0]), ("base", "link1"), strict=True
        )
    )
    text = f'<robot name="planar"><link name="base"/>{links}</robot>'
    return InverseDynamics(load_urdf(text), gravity, backend="python")


def rods(
    masses: tuple[float, float], lengths: tuple[float, float], gravity: tuple[float, float, float] = GRAVITY
) -> InverseDynamics:
    """Homogeneous rods: centre in the middle, m L² / 12."""
    m, length = np.array(masses), np.array(lengths)
    c, j = (length / 2).tolist(), (m * length**2 / 12).tolist()
    return planar_arm(masses, lengths, (c[0], c[1]), (j[0], j[1]), gravity)
