"""A `RobotModel` from a table of modified Denavit-Hartenberg parameters (Craig)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rnea_ros.model.errors import ModelError
from rnea_ros.model.inertia import Inertial, checked_inertial
from rnea_ros.model.pose import cos_sin, rotation_about
from rnea_ros.model.robot import Body, Frame, Friction, RobotModel

Array = NDArray[np.float64]

X_AXIS = (1.0, 0.0, 0.0)
Z_AXIS = (0.0, 0.0, 1.0)
KINDS = ("revolute", "continuous", "prismatic")


def load_dh(
    table: ArrayLike,
    inertias: Sequence[Any],
    *,
    kinds: Sequence[str] | None = None,
    name: str = "robot",
    joint_names: Sequence[str] | None = None,
    link_names: Sequence[str] | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    velocity_limits: ArrayLike | None = None,
    effort_limits: ArrayLike | None = None,
    friction: Friction | None = None,
    armature: ArrayLike | None = None,
) -> RobotModel:
    """Load a serial arm from modified DH parameters (Craig, Introduction to Robotics, 3rd ed., eq. 3.6).

    Frame i is reached from frame i−1 by

        ⁱ⁻¹Tᵢ = Rx(αᵢ₋₁) Tx(aᵢ₋₁) Rz(θᵢ) Tz(dᵢ)

    table: (n, 3) rows α, a, d, or (n, 4) rows α, a, d, θ; rad and m. The joint coordinate is added to θ of a revolute
        and to d of a prismatic joint. Frame 0 is the base; gravity refers to it.
    inertias: n entries (mass kg, centre of mass (3,) m, inertia (3, 3) kg m² about the centre of mass), in frame i.
    kinds: n of revolute (the default), continuous, prismatic.
    joint_names, link_names: joint_1 … and link_1 … by default; the base frame is called base. The tip is the last link.
    lower, upper, velocity_limits, effort_limits: (n,) rad or m, rad/s or m/s, Nm or N; infinite by default.
    friction, armature: as in `RobotModel`; none by default.

    Raises ModelError (a ValueError) that names the row, joint or link.
    """
    rows = _table(table)
    n = len(rows)
    joints = _names("joint_names", joint_names, "joint", n)
    links = _names("link_names", link_names, "link", n)
    kinds = ["revolute"] * n if kinds is None else list(kinds)
    for what, given in (("kinds", kinds), ("inertias", inertias)):
        if len(given) != n:
            raise ModelError(f"{what}: {len(given)} entries for {n} rows of the DH table")
    for joint, kind in zip(joints, kinds, strict=True):
        if kind not in KINDS:
            raise ModelError(f"joint {joint!r}: unknown kind {kind!r}; use one of {', '.join(KINDS)}")
    bodies = tuple(_body(i, rows[i], kinds[i], joints[i], links[i], _inertial(links[i], inertias[i])) for i in range(n))
    continuous = np.array([kind == "continuous" for kind in kinds])
    base = Frame(-1, np.eye(3), np.zeros(3))
    return RobotModel(
        name=name,
        bodies=bodies,
        joint_names=joints,
        lower=np.where(continuous, -np.inf, _per_joint("lower", lower, -np.inf, n)),
        upper=np.where(continuous, np.inf, _per_joint("upper", upper, np.inf, n)),
        velocity_limits=_per_joint("velocity_limits", velocity_limits, np.inf, n),
        effort_limits=_per_joint("effort_limits", effort_limits, np.inf, n),
        continuous=continuous,
        armature=_per_joint("armature", armature, 0.0, n),
        friction=Friction.none(n) if friction is None else friction,
        frames={"base": base} | {link: Frame(i, np.eye(3), np.zeros(3)) for i, link in enumerate(links)},
        tip=links[-1],
    )


def _body(index: int, row: Array, kind: str, joint: str, link: str, inertial: Inertial) -> Body:
    """Frame i at joint coordinate 0: R = Rx(α) Rz(θ),  p = (a, −d sin α, d cos α). The joint then moves about its z.

    Rz(θ + q) Tz(d) = Rz(θ) Tz(d) · Rz(q) and Rz(θ) Tz(d + q) = Rz(θ) Tz(d) · Tz(q), as turn and shift share the axis.
    """
    alpha, a, d, theta = (float(value) for value in row)
    cosine, sine = cos_sin(alpha)
    return Body(
        name=link,
        joint_name=joint,
        kind="prismatic" if kind == "prismatic" else "revolute",
        parent=index - 1,
        joint=index,
        axis=np.array(Z_AXIS),
        rotation=rotation_about(X_AXIS, alpha) @ rotation_about(Z_AXIS, theta),
        translation=np.array([a, -d * sine, d * cosine]),
        mass=inertial.mass,
        com=inertial.com,
        inertia=inertial.inertia,
    )


def _table(table: ArrayLike) -> Array:
    try:
        rows = np.array(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError("DH table is not numeric, or its rows differ in length") from None
    if rows.ndim != 2 or rows.shape[1] not in (3, 4) or len(rows) == 0:
        raise ModelError(f"DH table has shape {rows.shape}, expected (n, 3) rows α, a, d or (n, 4) rows α, a, d, θ")
    for index, row in enumerate(rows):
        if not np.isfinite(row).all():
            raise ModelError(f"DH table: row {index + 1} is not finite")
    return np.column_stack([rows, np.zeros(len(rows))]) if rows.shape[1] == 3 else rows


def _names(argument: str, names: Sequence[str] | None, prefix: str, n: int) -> tuple[str, ...]:
    chosen = tuple(f"{prefix}_{i + 1}" for i in range(n)) if names is None else tuple(names)
    if len(chosen) != n:
        raise ModelError(f"{argument}: {len(chosen)} names for {n} rows of the DH table")
    return chosen


def _inertial(link: str, entry: Any) -> Inertial:
    try:
        mass, com, inertia = entry
    except (TypeError, ValueError):
        raise ModelError(f"link {link!r}: expected (mass, centre of mass, inertia)") from None
    return checked_inertial(f"link {link!r}", mass, com, inertia)


def _per_joint(argument: str, values: ArrayLike | None, default: float, n: int) -> Array:
    if values is None:
        return np.full(n, default)
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{argument} is not numeric") from None
    if array.shape != (n,):
        raise ModelError(f"{argument} has shape {array.shape}, expected ({n},)")
    return array
