"""From a robot description to a MuJoCo model, through MuJoCo's own URDF reader.

Nothing of our dynamics goes into it: the engine is an independent judge of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

import mujoco
import numpy as np

from rnea_ros.model.description import read_tree
from rnea_ros.simulation.errors import SimulationError

PAYLOAD = "rnea_ros_payload"  # body at the tip, without mass until a payload is set
STIFF = 0.9999  # impedance of a constraint, as near to rigid as MuJoCo takes it
UNPHYSICAL = ("visual", "collision")  # shapes: contacts are not simulated, meshes are not needed


@dataclass(frozen=True)
class Physics:
    """What the engine is told beyond the description.

    timestep: of the integration, s.
    gravity: (3,) m/s² in the frame of the description's root.
    hard_stops: whether the description's position limits stop the joints.
    mass_scale: factor on mass and inertia of every link: the model error of whoever computes with the description.
    viscous_friction, coulomb_friction: Nms/rad and Nm at every controlled joint; the description's own are not used.
    armature: rotor inertia at every controlled joint, kg m².
    """

    timestep: float = 1e-3
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    hard_stops: bool = True
    mass_scale: float = 1.0
    viscous_friction: Sequence[float] = (0.0,)
    coulomb_friction: Sequence[float] = (0.0,)
    armature: Sequence[float] = (0.0,)

    def __post_init__(self) -> None:
        for name in ("timestep", "mass_scale"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise SimulationError(f"{name}: {value} must be finite and positive")
        if np.shape(self.gravity) != (3,) or not np.isfinite(self.gravity).all():
            raise SimulationError(f"gravity: {self.gravity} must be three finite values")


def build_model(
    description: str | os.PathLike[str],
    joints: Sequence[str] | None = None,
    tip: str | None = None,
    physics: Physics | None = None,
) -> tuple[mujoco.MjModel, tuple[str, ...]]:
    """A compiled MuJoCo model of a URDF or xacro (file or text), and the names of the controlled joints in order.

    joints: those that can be driven; every other joint is locked at zero. By default all that move. A mimic joint
    follows its leader through an equality constraint, and is locked with it. Contacts are off.
    tip: the link that carries the body `PAYLOAD`, if any.
    Raises SimulationError or ModelError, one line.
    """
    physics = physics or Physics()
    root = read_tree(description)
    spec = _read(root)
    followed = {equality.name1: equality.name2 for equality in spec.equalities}  # MuJoCo makes them of <mimic>
    chosen = _chosen(spec, followed, joints)
    spec.option.timestep = physics.timestep
    spec.option.gravity = physics.gravity
    spec.option.integrator = _integrator(physics)
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    spec.compiler.fusestatic = False  # fixed links keep their names: a push can act on any of them
    for equality in list(spec.equalities):
        if _leader(followed, equality.name1) in chosen:
            equality.solimp[:2] = STIFF
        else:
            spec.delete(equality)
    for joint in list(spec.joints):
        if _leader(followed, joint.name) not in chosen:
            spec.delete(joint)
            continue
        joint.damping = np.zeros_like(joint.damping)
        joint.frictionloss = 0.0
        joint.solimp_friction[:2] = STIFF  # what sticks does not creep
        joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
        if not physics.hard_stops:
            joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE
    if tip is not None:
        spec.body(tip).add_body(name=PAYLOAD)
    model = _compile(spec)
    model.body_mass *= physics.mass_scale
    model.body_inertia *= physics.mass_scale
    dofs = [model.jnt_dofadr[model.joint(name).id] for name in chosen]
    for what, target in (
        ("viscous_friction", model.dof_damping),
        ("coulomb_friction", model.dof_frictionloss),
        ("armature", model.dof_armature),
    ):
        target[dofs] = per_joint(what, getattr(physics, what), chosen)
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model, chosen


def _integrator(physics: Physics) -> mujoco.mjtIntegrator:
    """Runge-Kutta: at 1 kHz a hundred times closer than semi-implicit Euler. Friction on a light wrist is stiff,
    though, and takes the integrator that is implicit in the damping."""
    if any(physics.viscous_friction):
        return mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return mujoco.mjtIntegrator.mjINT_RK4


def per_joint(what: str, values: Sequence[float], joints: Sequence[str]) -> np.ndarray:
    """(n,) from n values or from one for all. Raises SimulationError for other lengths, non-finite or negative ones."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((1,), (len(joints),)):
        raise SimulationError(f"{what}: {array.size} values for {len(joints)} joints ({', '.join(joints)})")
    if not np.isfinite(array).all() or (array < 0.0).any():
        raise SimulationError(f"{what}: {array.tolist()} must be finite and not negative")
    return np.broadcast_to(array, (len(joints),)).copy()


def _leader(followed: Mapping[str, str], joint: str) -> str:
    """The joint at the end of a chain of mimics."""
    for _ in followed:  # a chain is not longer than there are mimics
        joint = followed.get(joint, joint)
    return joint


def _read(root: ElementTree.Element) -> mujoco.MjSpec:
    for link in root.iter("link"):
        for tag in UNPHYSICAL:
            for element in link.findall(tag):
                link.remove(element)
    try:
        return mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
    except ValueError as error:
        raise SimulationError(f"MuJoCo cannot read the description: {' '.join(str(error).split())}") from None


def _compile(spec: mujoco.MjSpec) -> mujoco.MjModel:
    try:
        return spec.compile()
    except ValueError as error:
        raise SimulationError(f"MuJoCo cannot simulate the description: {' '.join(str(error).split())}") from None


def _chosen(spec: mujoco.MjSpec, followed: Mapping[str, str], joints: Sequence[str] | None) -> tuple[str, ...]:
    movable = [joint.name for joint in spec.joints if joint.name not in followed]
    for name in joints or ():
        if name not in movable:
            raise SimulationError(f"joints: no joint {name!r} to drive; the description has {', '.join(movable)}")
    return tuple(joints or movable)
