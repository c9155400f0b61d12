"""What configure checks before any torque, and gains that pass: from M(q), gravity's stiffness and the latency.

    held up      the smallest eigenvalue of Kp + ½(∂g/∂q + (∂g/∂q)ᵀ) must be positive where gravity is at the reference;
                 the arm is then stable as a hanging pendulum is, and falls over otherwise
    damping      Kd L < m_eff with the effective inertia m_eff,i = 1 / (M⁻¹)_ii and the latency L: a discrete loop that
                 takes away more momentum in L than the joint has diverges
    floating     D > L ‖∂g/∂q‖: gravity evaluated L late acts as the negative damping L ∂g/∂q

Everything is taken over a fixed set of poses within the limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.errors import ParameterError
from rnea_ros.control.settings import Settings
from rnea_ros.dynamics.inverse_dynamics import InverseDynamics
from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]

POSES = 100
NEAR_LIMIT = 0.7  # of the bound: worth a warning
RARE = 0.1  # share of the poses in which a bound may be passed with a warning alone
SLOW_POLE = 20.0  # rad/s
LOST_TO_GRAVITY = 0.7  # largest share of the stiffness
# What `check` looks at, of all that changes while the controller is active.
CHECKED = (
    "law", "gravity_at", "feedforward_pd.kp", "feedforward_pd.kd", "computed_torque.kp", "computed_torque.kd",
    "gravity_compensation.damping", "braking.damping", "limits.effort",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Survey:
    """The robot over its poses, as far as gains depend on it. Arrays are (n,)."""

    effective_inertia: Array  # (poses, n) 1 / (M⁻¹)_ii, kg m²
    inertia: Array  # largest M_ii, kg m²
    gravity_stiffness: Array  # (poses, n, n) ∂g/∂q, Nm/rad
    gravity: Array  # largest |g_i|, Nm


def poses(robot: RobotModel, count: int = POSES) -> Array:
    """(count, n) poses within the limits, the same at every call; unlimited joints turn once around."""
    lower = np.where(np.isfinite(robot.lower), robot.lower, -np.pi)
    upper = np.where(np.isfinite(robot.upper), robot.upper, np.pi)
    return lower + (upper - lower) * np.random.default_rng(0).random((count, robot.n))


def survey(dynamics: InverseDynamics) -> Survey:
    """Inertia and gravity's stiffness of a robot over its poses."""
    robot = dynamics.robot
    q = poses(robot)
    mass = dynamics.mass_matrix(q)
    effective = 1.0 / np.diagonal(np.linalg.inv(mass), axis1=1, axis2=2)
    step = 1e-5
    columns = []
    for joint in range(robot.n):
        offset = step * np.eye(robot.n)[joint]
        columns.append((dynamics.gravity_torque(q + offset) - dynamics.gravity_torque(q - offset)) / (2.0 * step))
    stiffness = np.stack(columns, axis=2)
    return Survey(
        effective_inertia=effective,
        inertia=np.diagonal(mass, axis1=1, axis2=2).max(axis=0),
        gravity_stiffness=0.5 * (stiffness + stiffness.transpose(0, 2, 1)),
        gravity=np.abs(dynamics.gravity_torque(q)).max(axis=0),
    )


def proposed_gains(found: Survey, latency: float, effort_limit: Array) -> tuple[Array, Array]:
    """Kp (Nm/rad), Kd (Nms/rad) of feedforward_pd, each (n,), two significant digits.

    Kd is 0.4 of what latency and effective inertia allow, at most 0.2 s of the effort limit per radian, so that the
    noise of a velocity stays small. Kp keeps a joint of its largest inertia damped with a ratio of at least 0.7, its
    slow pole at most 20 rad/s; and it grows where gravity would take away more than 0.7 of it.
    """
    damping = np.minimum(0.4 * found.effective_inertia.min(axis=0) / latency, 0.2 * effort_limit)
    stiffness = np.minimum(damping**2 / (2.0 * found.inertia), SLOW_POLE * damping)
    for _ in range(1000):  # Kp^-½ ∂g/∂q Kp^-½ says how much of its own stiffness gravity takes away from each joint
        root = np.sqrt(stiffness)
        values, vectors = np.linalg.eigh(found.gravity_stiffness / np.outer(root, root))
        worst = int(np.argmin(values[:, 0]))
        if values[worst, 0] >= -LOST_TO_GRAVITY:
            break
        stiffness = stiffness * (1.0 + 0.1 * vectors[worst, :, 0] ** 2)
    return _two_digits(stiffness), _two_digits(damping)


def proposed_braking(found: Survey, latency: float) -> Array:
    """Braking damping (n,), Nms/rad: 0.3 of what latency and effective inertia allow."""
    return np.asarray(0.3 * found.effective_inertia.min(axis=0) / latency)


def completed(settings: Settings, found: Survey) -> Settings:
    """Settings with what was left empty and has a default filled in. Gains have none: ParameterError proposes some."""
    if settings["law"] == "feedforward_pd":
        for index, (name, given) in enumerate((("kp", settings.kp), ("kd", settings.kd))):
            if given is None:
                proposal = proposed_gains(found, settings.latency, settings.effort_limit)[index]
                raise ParameterError(
                    f"parameter 'feedforward_pd.{name}' is not set; for this robot at a latency of "
                    f"{settings.latency * 1e3:g} ms {_listed(proposal)} would do"
                )
    elif settings.computed_kp is None or settings.computed_kd is None:
        raise ParameterError(
            "parameters 'computed_torque.kp' and 'computed_torque.kd' are not set; kp [100] and kd [20] are a start"
        )
    braking = settings.braking_damping
    if braking is None:
        braking = proposed_braking(found, settings.latency)
        if settings.kd is not None:
            braking = np.minimum(braking, settings.kd)
    stiffness = settings.position_stiffness
    if stiffness is None:
        stiffness = settings.kp
    if stiffness is None:
        stiffness, _ = proposed_gains(found, settings.latency, settings.effort_limit)
    damping = settings.float_damping
    if damping is None:
        damping = 0.1 * braking
    return replace(settings, braking_damping=braking, float_damping=damping, position_stiffness=stiffness)


def check(settings: Settings, found: Survey, names: tuple[str, ...]) -> list[str]:
    """Warnings, one line each. Raises ParameterError for what would let the arm fall or diverge."""
    warnings: list[str] = []
    latency = settings.latency
    assert settings.float_damping is not None and settings.braking_damping is not None
    if settings["law"] == "feedforward_pd":
        assert settings.kp is not None and settings.kd is not None
        if settings["gravity_at"] == "reference" and settings.carries_gravity:
            _check_held_up(settings.kp, found, names)
        warnings += check_damping("feedforward_pd.kd", settings.kd, found.effective_inertia, latency, names)
        bound = found.effective_inertia / latency**2
        warnings += _check_bound("feedforward_pd.kp", settings.kp, bound, "Nm/rad", latency, names)
    else:
        assert settings.computed_kp is not None and settings.computed_kd is not None
        ones = np.ones((1, len(names)))
        warnings += check_damping("computed_torque.kd", settings.computed_kd, ones, latency, names)
        warnings += _check_bound("computed_torque.kp", settings.computed_kp, ones / latency**2, "1/s²", latency, names)
    for name, value in (
        ("gravity_compensation.damping", settings.float_damping),
        ("braking.damping", settings.braking_damping),
    ):
        warnings += check_damping(name, value, found.effective_inertia, latency, names)
    return warnings + _check_floating(settings, found, names) + _check_effort(settings, found, names)


def _lowest_stiffness(found: Survey, kp: Array) -> tuple[float, Array]:
    """Smallest eigenvalue of Kp + ∂g/∂q over the poses, and its direction (n,)."""
    values, vectors = np.linalg.eigh(np.diag(kp) + found.gravity_stiffness)
    worst = int(np.argmin(values[:, 0]))
    return float(values[worst, 0]), np.asarray(vectors[worst, :, 0])


def _check_held_up(kp: Array, found: Survey, names: tuple[str, ...]) -> None:
    lowest, direction = _lowest_stiffness(found, kp)
    if lowest <= 0.0:
        joint = int(np.argmax(np.abs(direction)))
        raise ParameterError(
            f"parameter 'feedforward_pd.kp': the arm cannot hold itself, Kp + ∂g/∂q falls to {lowest:.3g} Nm/rad, most "
            f"in {names[joint]!r}; set 'gravity_at' to 'measured', or raise its kp above {kp[joint] - lowest:.3g}"
        )


def check_damping(parameter: str, gain: Array, inertia: Array, latency: float, names: tuple[str, ...]) -> list[str]:
    """Damping (n,) of each joint against inertia (poses, n) and latency (s): warnings, or ParameterError."""
    unit = "1/s" if parameter.startswith("computed") else "Nms/rad"
    return _check_bound(parameter, gain, inertia / latency, unit, latency, names)


def _check_bound(
    parameter: str, gain: Array, bounds: Array, unit: str, latency: float, names: tuple[str, ...]
) -> list[str]:
    """The gain of each joint against the bounds (poses, n) that inertia and latency set."""
    warnings = []
    for joint, (name, value) in enumerate(zip(names, gain, strict=True)):
        bound = bounds[:, joint]
        share = float(np.mean(value >= bound))
        if share > RARE:
            most = float(np.quantile(bound, RARE))
            raise ParameterError(
                f"parameter {parameter!r}: {value:.3g} {unit} in {name!r} makes the loop diverge in {share:.0%} of the "
                f"poses: its effective inertia at a latency of {latency * 1e3:g} ms allows {most:.3g}; lower it, or "
                "the latency"
            )
        if share > 0.0:
            warnings.append(
                f"{parameter} of {name!r} is {value:.3g} {unit}: in {share:.0%} of the poses that is more than inertia "
                f"and latency allow, down to {bound.min():.3g}"
            )
        elif value > NEAR_LIMIT * bound.min():
            warnings.append(
                f"{parameter} of {name!r} is {value:.3g} {unit}, near the {bound.min():.3g} that inertia and latency"
                " allow"
            )
    return warnings


def _check_floating(settings: Settings, found: Survey, names: tuple[str, ...]) -> list[str]:
    negative = settings.latency * np.linalg.norm(found.gravity_stiffness, axis=2).max(axis=0)
    assert settings.float_damping is not None
    return [
        f"gravity_compensation.damping of {name!r} is {value:.3g} Nms/rad, below the {most:.3g} that the latency takes "
        "away: the floating arm may creep; raise it"
        for name, value, most in zip(names, settings.float_damping, negative, strict=True)
        if value < most
    ]


def _check_effort(settings: Settings, found: Survey, names: tuple[str, ...]) -> list[str]:
    return [
        f"gravity takes up to {value:.3g} Nm in {name!r}, and its effort limit is {limit:.3g} Nm: there are poses that "
        "it cannot hold"
        for name, value, limit in zip(names, found.gravity, settings.effort_limit, strict=True)
        if value > limit
    ]


def _two_digits(values: Array) -> Array:
    return np.array([float(f"{value:.2g}") for value in values])


def _listed(values: Array) -> str:
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"
