"""The parameters as one validated whole: `Settings`, with arrays of the robot's size. Taken whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.errors import ParameterError
from rnea_ros.control.parameters import HARDWARE, RESIDUAL, defaults, known
from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Settings:
    """What the controller reads. Arrays are (n,) in controller order; units as declared in `parameters.py`.

    Gains and braking damping are None where they were left empty: `checks.py` proposes them.
    """

    values: Mapping[str, Any]  # every parameter by name, in its type
    gravity: Array
    hardware_gravity: Array
    kp: Array | None
    kd: Array | None
    ki: Array
    integral_limit: Array
    computed_kp: Array | None
    computed_kd: Array | None
    float_damping: Array | None
    braking_damping: Array | None
    braking_acceleration: Array
    effort_limit: Array
    effort_rate: Array
    position_stiffness: Array | None
    velocity_fault: Array
    tracking_warning: Array
    tracking_fault: Array
    contact_threshold: Array
    payload: tuple[float, Array, Array] | None  # mass, centre of mass (3,), inertia (3, 3)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def period(self) -> float:
        """Nominal period, s."""
        return float(1.0 / self.values["rate"])

    @property
    def latency(self) -> float:
        return float(self.values["latency"]) or self.period

    @property
    def state_timeout(self) -> float:
        return max(float(self.values["state_timeout"]), 3.0 * self.period)

    @property
    def carries_gravity(self) -> bool:
        """Whether the arm falls where our command ends."""
        return bool(self.values["gravity_source"] != HARDWARE)


def coerced(values: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters in their types, defaults filled in; ParameterError for unknown names and wrong values."""
    whole = defaults()
    for name, value in values.items():
        whole[name] = known(name).coerced(value)
    return whole


def require_gravity_source(values: Mapping[str, Any]) -> None:
    """ParameterError where nobody said who carries gravity."""
    if values["gravity_source"] == "":
        raise ParameterError(
            "parameter 'gravity_source' is required: 'self' (nothing but our command carries the arm), 'hardware' "
            "(the robot adds gravity) or 'residual' (it adds the gravity that it believes in)"
        )


def build(values: Mapping[str, Any], robot: RobotModel) -> Settings:
    """Settings for `robot` from parameters by name. Raises ParameterError, naming the parameter."""
    v = coerced(values)
    require_gravity_source(v)
    check_sizes(v)
    n = robot.n
    limit = _effort_limit(v, robot)
    unlimited = np.full(n, np.inf)
    return Settings(
        values=v,
        gravity=np.array(v["gravity"]),
        hardware_gravity=np.array(v["gravity"] if v["gravity_source"] != RESIDUAL else v["hardware_gravity"]),
        kp=_per_joint(v, "feedforward_pd.kp", robot),
        kd=_per_joint(v, "feedforward_pd.kd", robot),
        ki=_or(_per_joint(v, "feedforward_pd.ki", robot), np.zeros(n)),
        integral_limit=_or(_per_joint(v, "feedforward_pd.integral_limit", robot), 0.1 * limit),
        computed_kp=_per_joint(v, "computed_torque.kp", robot),
        computed_kd=_per_joint(v, "computed_torque.kd", robot),
        float_damping=_per_joint(v, "gravity_compensation.damping", robot),
        braking_damping=_per_joint(v, "braking.damping", robot),
        braking_acceleration=_or(_per_joint(v, "braking.acceleration", robot), np.full(n, 5.0)),
        effort_limit=limit,
        effort_rate=_or(_per_joint(v, "limits.effort_rate", robot), np.full(n, 500.0)),
        position_stiffness=_per_joint(v, "limits.position_stiffness", robot),
        velocity_fault=_or(_per_joint(v, "limits.velocity", robot), 1.2 * robot.velocity_limits),
        tracking_warning=_or(_per_joint(v, "limits.tracking_warning", robot), unlimited),
        tracking_fault=_or(_per_joint(v, "limits.tracking_fault", robot), unlimited),
        contact_threshold=_or(_per_joint(v, "contact.threshold", robot), unlimited),
        payload=_payload(v, robot),
    )


def _or(value: Array | None, default: Array) -> Array:
    return default if value is None else value


def check_sizes(v: Mapping[str, Any]) -> None:
    """ParameterError where an array whose length does not depend on the robot has another."""
    for name, size in (
        ("gravity", 3),
        ("hardware_gravity", 3),
        ("payload.com", 3),
        ("payload.inertia", 6),
        ("locked_positions", len(v["locked_joints"])),
    ):
        if len(v[name]) != size:
            raise ParameterError(f"parameter {name!r} has {len(v[name])} values, expected {size}")


def _per_joint(v: Mapping[str, Any], name: str, robot: RobotModel) -> Array | None:
    given = v[name]
    if not given:
        return None
    if len(given) not in (1, robot.n):
        raise ParameterError(
            f"parameter {name!r} has {len(given)} values, expected 1 or {robot.n} ({', '.join(robot.joint_names)})"
        )
    return np.full(robot.n, given[0]) if len(given) == 1 else np.array(given)


def _effort_limit(v: Mapping[str, Any], robot: RobotModel) -> Array:
    given = _per_joint(v, "limits.effort", robot)
    limit = robot.effort_limits.copy() if given is None else given
    for name, value in zip(robot.joint_names, limit, strict=True):
        if value == 0.0:
            raise ParameterError(f"effort limit of {name!r} is 0: set 'limits.effort' to what its drive can do")
        if not np.isfinite(value):
            raise ParameterError(f"joint {name!r} has no effort limit in its description: set 'limits.effort'")
    return np.asarray(limit)


def _payload(v: Mapping[str, Any], robot: RobotModel) -> tuple[float, Array, Array] | None:
    mass = v["payload.mass"]
    if mass == 0.0:
        if any(v["payload.inertia"]):
            raise ParameterError("parameter 'payload.inertia' is given, but 'payload.mass' is 0")
        return None
    xx, xy, xz, yy, yz, zz = v["payload.inertia"]
    com, inertia = np.array(v["payload.com"]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    try:
        robot.with_payload(mass, com, inertia if inertia.any() else None)
    except ValueError as error:
        raise ParameterError(f"parameter 'payload.mass' and its kind: {error}") from None
    return mass, com, inertia
