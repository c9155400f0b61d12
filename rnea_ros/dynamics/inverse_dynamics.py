"""Torque from motion, and everything that is defined from it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics import validation
from rnea_ros.dynamics.errors import DynamicsError
from rnea_ros.dynamics.kernels import Backend, make_kernel
from rnea_ros.dynamics.links import Layout, friction_rows, friction_torque, link_system, origin_inertia, pack_inertia
from rnea_ros.dynamics.matrices import coriolis_matrix, mass_matrix, regressor
from rnea_ros.dynamics.results import Payload, Terms, Trace
from rnea_ros.dynamics.tracing import potential_energy, trace
from rnea_ros.model.errors import ModelError
from rnea_ros.model.inertia import checked_inertial, parallel_axis
from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]

_empty = np.empty  # a name of its own, since `torque` is called a thousand times a second


class InverseDynamics:
    """Dynamics of one robot with settable gravity and payload.

        τ = M(q) q̈ + C(q, q̇) q̇ + g(q) + armature q̈ + τ_f(q̇) − J_bᵀ(q) w

    All of it comes from the one recursion of `newton_euler.py`. Arrays are (n,) for one state or (N, n) for N states;
    results have the same form, and matrices (n, n) or (N, n, n). Units: rad (m for prismatic joints), s, Nm (N).
    Arguments may be any real array-like; a float64 C-contiguous array is fastest. Every method raises DynamicsError (a
    ValueError) for wrong shapes, what is not a real number, and what is not finite.

    robot: the model, with armature and friction. gravity: (3,) m/s² in base coordinates. backend: "auto" compiles with
    Numba where it is installed, "python" never does, "numba" insists on it, "recursion" prepares nothing at all.
    """

    def __init__(self, robot: RobotModel, gravity: Any = (0.0, 0.0, -9.81), backend: Backend = "auto") -> None:
        if not isinstance(robot, RobotModel):
            raise DynamicsError(f"robot is {type(robot).__name__}, expected a RobotModel; see load_urdf")
        if backend not in get_args(Backend):
            raise DynamicsError(f"unknown backend {backend!r}; use one of {', '.join(get_args(Backend))}")
        self._robot = robot
        self._n = robot.n
        self._layout = Layout(robot.n)
        self._kernel, self._system = make_kernel(robot, backend)
        self._inputs = np.zeros(self._layout.size)
        self._inputs[self._layout.armature] = robot.armature
        self._inputs[self._layout.friction] = friction_rows(robot.friction).ravel()
        self._payload: Payload | None = None
        self.gravity = gravity
        self.payload = None

    @property
    def backend(self) -> str:
        """What computes the torque: "numba", "python", or "recursion"."""
        return self._kernel.name

    def warm_up(self) -> None:
        """Have every kernel ready: compiled, or loaded from the cache. Processes that do so at once compile once."""
        self._kernel.single, self._kernel.gravity, self._kernel.batch  # noqa: B018 - made when first asked for

    @property
    def robot(self) -> RobotModel:
        """The model as given, without the run-time payload."""
        return self._robot

    @property
    def gravity(self) -> Array:
        """(3,) m/s² in base coordinates. Settable at any time; a tilted base is a tilted vector."""
        return self._inputs[self._layout.gravity].copy()

    @gravity.setter
    def gravity(self, value: Any) -> None:
        self._inputs[self._layout.gravity] = validation.vector("gravity", value, 3)

    @property
    def payload(self) -> Payload | None:
        """What the tip body carries besides its own mass; None for nothing. Settable at any time, and reversible.

        Takes a `Payload` or its arguments (mass, com, inertia, frame) as a tuple. Raises DynamicsError for an
        impossible payload, a frame that is not on the tip body, and where the robot has several leaves and no tip.
        """
        return deepcopy(self._payload)

    @payload.setter
    def payload(self, value: Payload | tuple[Any, ...] | None) -> None:
        if value is not None and not isinstance(value, Payload):
            if not isinstance(value, tuple) or not 1 <= len(value) <= 4:
                raise DynamicsError("payload is neither None, a Payload nor a tuple (mass, com, inertia, frame)")
            value = Payload(*value)
        self._inputs[self._layout.tip] = self._system.tip_parameters() + self._payload_parameters(value)
        self._payload = deepcopy(value)  # of which the caller may change what the arrays hold

    def _payload_parameters(self, payload: Payload | None) -> Array:
        """(10,) what the payload adds to the tip link's parameters, in which it is linear."""
        if payload is None:
            return np.zeros(10)
        try:
            tip = self._robot.tip_frame
            frame = tip if payload.frame is None else self._robot.moving_frame(payload.frame, "payload frame")
            inertial = checked_inertial("payload", payload.mass, payload.com, payload.inertia)
        except ModelError as error:
            raise DynamicsError(str(error)) from None
        if frame.body != tip.body:
            carrier, body = self._robot.bodies[frame.body].name, self._robot.bodies[tip.body].name
            raise DynamicsError(
                f"payload frame {payload.frame!r} is on {carrier!r}, but only the tip body {body!r} takes a payload at "
                "run time; use robot.with_payload for other bodies"
            )
        seen = inertial.seen_from(frame.rotation, frame.translation)
        turn = self._system.frame_rotations[tip.body].T  # from the model's frame to the kernel's
        return pack_inertia(origin_inertia(seen.mass, turn @ seen.com, turn @ seen.inertia @ turn.T))

    # Torque

    def torque(self, q: Any, qd: Any, qdd: Any, wrench: Any = None, out: Array | None = None) -> Array:
        """Joint torque τ that produces the acceleration q̈: (n,) or (N, n) Nm (N for prismatic joints).

        wrench: (6,), or (N, 6), force (N) then moment (Nm) that the environment exerts on the tip body, about the
        origin of and expressed in the tip frame: τ = RNEA − J_bᵀ w. out: a float64 array for the result, which is
        returned.
        """
        if wrench is None:
            try:
                torque = _empty(self._n) if out is None else out
                if self._kernel.single(q, qd, qdd, self._inputs, torque):
                    return torque
            except (AttributeError, TypeError, ValueError):
                pass
            # Many states, or not arrays as the kernel wants them: the checks tell which
            if (batch := self._batch_as_it_is(q, qd, qdd, out)) is not None:
                return batch
        q, qd, qdd = validation.joint_arrays(self._robot.joint_names, q=q, qd=qd, qdd=qdd)
        if wrench is None:
            return self._run(q, qd, qdd, self._inputs, out)
        wrench = self._checked_wrench(wrench, q.shape)
        if wrench.ndim == 1:
            return self._run(q, qd, qdd, self._with(wrench=wrench), out)
        share = self._wrench_torque(q, wrench)  # first, since `out` may be the memory of an input
        torque = self._run(q, qd, qdd, self._inputs, out)
        torque += share
        return torque

    def gravity_torque(self, q: Any, out: Array | None = None) -> Array:
        """g(q): torque that holds the robot and its payload still against gravity, and nothing else. (n,) or (N, n)"""
        try:
            torque = _empty(self._n) if out is None else out
            if self._kernel.gravity(q, self._inputs, torque):
                return torque
        except (AttributeError, TypeError, ValueError):  # not arrays as the kernel wants them: the checks say why
            pass
        (q,) = validation.joint_arrays(self._robot.joint_names, q=q)
        if q.ndim == 1:
            torque = np.empty_like(q)
            if not self._kernel.gravity(q, self._inputs, torque):
                raise RuntimeError("the kernel does not take arrays that were checked")
            return torque if out is None else _filled(out, torque)
        still = np.zeros_like(q)
        return self._run(q, still, still, self._rigid(), out)

    def coriolis_torque(self, q: Any, qd: Any) -> Array:
        """C(q, q̇) q̇: what is quadratic in velocity, payload included, gravity and friction not. (n,) or (N, n)"""
        q, qd = validation.joint_arrays(self._robot.joint_names, q=q, qd=qd)
        return self._run(q, qd, np.zeros_like(q), self._rigid(gravity=None))

    def friction_torque(self, qd: Any) -> Array:
        """τ_f(q̇): motor torque that joint friction costs, positive for positive velocity. (n,) or (N, n)"""
        (qd,) = validation.joint_arrays(self._robot.joint_names, qd=qd)
        return friction_torque(self._robot.friction, qd)

    # Matrices

    def mass_matrix(self, q: Any) -> Array:
        """M(q), armature on its diagonal included: (n, n) or (N, n, n), kg m². Symmetric positive definite."""
        (q,) = validation.joint_arrays(self._robot.joint_names, q=q)
        matrix = mass_matrix(self._kernel, np.atleast_2d(q), self._rigid(gravity=None))
        matrix += np.diag(self._robot.armature)
        return matrix if q.ndim == 2 else matrix[0]

    def coriolis_matrix(self, q: Any, qd: Any) -> Array:
        """C(q, q̇) by Christoffel symbols, so that Ṁ − 2C is skew-symmetric: (n, n) or (N, n, n)."""
        q, qd = validation.joint_arrays(self._robot.joint_names, q=q, qd=qd)
        matrix = coriolis_matrix(self._kernel, np.atleast_2d(q), np.atleast_2d(qd), self._rigid(gravity=None))
        return matrix if q.ndim == 2 else matrix[0]

    def regressor(self, q: Any, qd: Any, qdd: Any) -> Array:
        """Y with Y π = M q̈ + C q̇ + g of the robot without payload: (n, 10 bodies) or (N, n, 10 bodies).

        Per body, in the order of `robot.bodies`, π = m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link's origin, in
        the link frame; see `inertial_parameters`. Armature and friction are not part of it.
        """
        q, qd, qdd = validation.joint_arrays(self._robot.joint_names, q=q, qd=qd, qdd=qdd)
        position, velocity, acceleration = (np.atleast_2d(x) for x in (q, qd, qdd))
        matrix = regressor(link_system(self._robot), position, velocity, acceleration, self.gravity)
        return matrix if q.ndim == 2 else matrix[0]

    def inertial_parameters(self) -> Array:
        """π (10 bodies,) that belongs to `regressor`: the model's own values, kg, kg m, kg m²."""
        return np.concatenate([_standard_parameters(body.mass, body.com, body.inertia) for body in self._robot.bodies])

    # Parts

    def terms(self, q: Any, qd: Any, qdd: Any, wrench: Any = None) -> Terms:
        """The torque split into named terms that add up to `torque(q, qd, qdd, wrench)`; see `Terms`."""
        q, qd, qdd = validation.joint_arrays(self._robot.joint_names, q=q, qd=qd, qdd=qdd)
        still = np.zeros_like(q)
        bare = self._system.tip_parameters()
        payload = self._inputs[self._layout.tip] - bare
        zero = np.zeros_like(q)
        if wrench is not None:
            wrench = self._checked_wrench(wrench, q.shape)
        return Terms(
            inertia=self._run(q, still, qdd, self._rigid(gravity=None, tip=bare)),
            coriolis=self._run(q, qd, still, self._rigid(gravity=None, tip=bare)),
            gravity=self._run(q, still, still, self._rigid(tip=bare)),
            armature=self._robot.armature * qdd,
            friction=friction_torque(self._robot.friction, qd),
            payload=self._run(q, qd, qdd, self._rigid()) - self._run(q, qd, qdd, self._rigid(tip=bare))
            if payload.any()
            else zero,
            wrench=zero.copy() if wrench is None else self._wrench_torque(q, wrench),
        )

    def trace(self, q: Any, qd: Any, qdd: Any, wrench: Any = None) -> Trace:
        """Every vector of the recursion for one state (n,), per link and in link frames; payload included."""
        q, qd, qdd = self._one_state(q=q, qd=qd, qdd=qdd)
        if wrench is not None:
            wrench = self._checked_wrench(wrench, q.shape)
        return trace(self._loaded_robot(), q, qd, qdd, self.gravity, wrench)

    def acceleration(self, q: Any, qd: Any, tau: Any, wrench: Any = None) -> Array:
        """Forward dynamics: q̈ that the joint torque τ produces, (n,) or (N, n).

        q̈ = M(q)⁻¹ (τ − C(q, q̇) q̇ − g(q) − τ_f(q̇) + J_bᵀ w)
        """
        q, qd, tau = validation.joint_arrays(self._robot.joint_names, q=q, qd=qd, tau=tau)
        bias = self.torque(q, qd, np.zeros_like(q), wrench)
        try:
            solution: Array = np.linalg.solve(self.mass_matrix(q), (tau - bias)[..., None])[..., 0]
        except np.linalg.LinAlgError:
            raise DynamicsError("the mass matrix is singular: some joint moves nothing that has mass") from None
        return solution

    # Energy

    def kinetic_energy(self, q: Any, qd: Any) -> Any:
        """T = ½ q̇ᵀ M(q) q̇, armature and payload included: J, a float or (N,)."""
        q, qd = validation.joint_arrays(self._robot.joint_names, q=q, qd=qd)
        momentum = self._run(q, np.zeros_like(q), qd, self._rigid(gravity=None)) + self._robot.armature * qd
        energy = 0.5 * np.sum(qd * momentum, axis=-1)
        return energy if q.ndim == 2 else float(energy)

    def potential_energy(self, q: Any) -> Any:
        """V = −Σ m gᵀ p_C of bodies and payload, 0 for a mass at the base's origin: J, a float or (N,)."""
        (q,) = validation.joint_arrays(self._robot.joint_names, q=q)
        energy = potential_energy(link_system(self._loaded_robot()), q, self.gravity)
        return energy if q.ndim == 2 else float(energy)

    # Shared

    def _batch_as_it_is(self, q: Any, qd: Any, qdd: Any, out: Array | None) -> Array | None:
        """Torque of (N, n) states where the kernel itself tests everything about them, and finds nothing wrong."""
        try:
            if self._kernel.tests_finite and q.shape == qd.shape == qdd.shape == (len(q), self._n):
                torque: Array = _empty(q.shape) if out is None else out
                if torque.shape != q.shape or not _writes_apart(torque, q, qd, qdd):
                    return None
                return torque if self._kernel.batch(q, qd, qdd, self._inputs, torque) else None
        except (AttributeError, TypeError, ValueError):
            pass
        return None

    def _one_state(self, **values: Any) -> list[Array]:
        arrays = validation.joint_arrays(self._robot.joint_names, **values)
        if arrays[0].ndim != 1:
            raise DynamicsError(f"a trace is of one state, not of {len(arrays[0])}")
        return arrays

    def _checked_wrench(self, wrench: Any, shape: tuple[int, ...]) -> Array:
        try:
            _ = self._robot.tip_frame
        except ModelError as error:
            raise DynamicsError(str(error)) from None
        return validation.wrench_array(wrench, shape)

    def _loaded_robot(self) -> RobotModel:
        load = self._payload
        return self._robot if load is None else self._robot.with_payload(load.mass, load.com, load.inertia, load.frame)

    def _with(self, **values: Any) -> Array:
        """The run-time inputs with some of them replaced."""
        inputs = self._inputs.copy()
        for name, value in values.items():
            inputs[getattr(self._layout, name)] = value
        return inputs

    def _rigid(self, **values: Any) -> Array:
        """The same without armature and friction; None is zero."""
        zeroed = {name: 0.0 if value is None else value for name, value in values.items()}
        return self._with(armature=0.0, friction=0.0, **zeroed)

    def _run(self, q: Array, qd: Array, qdd: Array, inputs: Array, out: Array | None = None) -> Array:
        """Torque of checked states, whatever their number."""
        if out is None or not _writes_apart(validation.output(out, q.shape), q, qd, qdd):
            target = np.empty_like(q)
        else:
            target = out
        if not (self._kernel.single if q.ndim == 1 else self._kernel.batch)(q, qd, qdd, inputs, target):
            raise RuntimeError("the kernel does not take arrays that were checked")
        return target if out is None or target is out else _filled(out, target)

    def _wrench_torque(self, q: Array, wrench: Array) -> Array:
        """−J_bᵀ w. Torque is linear in the wrench, so N wrenches cost six batches: −J_bᵀ w = Σ wₖ (−J_bᵀ eₖ)."""
        still = np.zeros_like(q)
        if wrench.ndim == 1:
            return self._run(q, still, still, self._rigid(gravity=None, tip=None, wrench=wrench))
        torque = np.zeros_like(q)
        for k, unit in enumerate(np.eye(6)):
            torque += wrench[:, k : k + 1] * self._wrench_torque(q, unit)
        return torque


def _writes_apart(out: Array, *read: Array) -> bool:
    """Whether a kernel can write to `out` as it stands while it reads the others."""
    plain = type(out) is np.ndarray and out.flags.carray  # contiguous, aligned, writeable
    return plain and not any(np.may_share_memory(out, array) for array in read)


def _filled(out: Array, values: Array) -> Array:
    validation.output(out, values.shape)[:] = values
    return out


def _standard_parameters(mass: float, com: Array, inertia: Array) -> Array:
    """(10,): m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin (Steiner)."""
    about = inertia + parallel_axis(mass, com)
    return np.array([mass, *(mass * com), about[0, 0], about[0, 1], about[1, 1], about[0, 2], about[1, 2], about[2, 2]])
