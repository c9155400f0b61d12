"""What is wrong or remarkable about a robot description, before it makes torque."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rnea_ros.model.description import Description, describe, read_tree, tag_of
from rnea_ros.model.errors import ModelError
from rnea_ros.model.inertia import why_impossible
from rnea_ros.model.kinematics import body_poses, jacobian_at
from rnea_ros.model.robot import Body, RobotModel
from rnea_ros.model.shapes import box_around, has_shape
from rnea_ros.model.urdf import build

Array = NDArray[np.float64]
Severity = Literal["fatal", "warning", "info"]

LIGHT = 0.01  # kg; a moving link below this is suspect
GYRATION = (0.5e-3, 1.0)  # m; √(I/m) of an arm's link lies between
IMPLAUSIBLE_TORQUE = 1e4  # Nm or N from gravity alone
OVERLOADED = 10.0  # gravity alone at this multiple of the effort limit: units, not a weak drive
SMALL = 0.05  # m; a shape without mass below this diagonal is a marker
OUTSIDE = (0.05, 0.5)  # a centre of mass outside its shape by 5 cm and by half of the shape's diagonal
SAMPLES = 64  # configurations in which gravity torque is looked at


@dataclass(frozen=True)
class Finding:
    """One finding: severity, the link or joint it is about, what is so, what to do."""

    severity: Severity
    name: str
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.name}: {self.what}" + (f"; {self.advice}" if self.advice else "")


def examine(
    source: RobotModel | str | os.PathLike[str],
    joints: Sequence[str] | None = None,
    locked: Mapping[str, float] | None = None,
    tip: str | None = None,
    xacro_args: Mapping[str, str] | None = None,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> list[Finding]:
    """Findings about a description (path or XML; other arguments as of `load_urdf`) or a model, the worst first.

    A model knows neither shapes nor single links any more, so a description is told more about. A description that
    cannot be loaded gives one fatal finding. gravity (3,) m/s² in the root frame.
    """
    if isinstance(source, RobotModel):
        findings = list(_examine_model(source, gravity))
    else:
        try:
            root = read_tree(source, xacro_args)
            description = describe(root)
            model = build(description, joints, locked, tip)
        except ModelError as error:
            return [Finding("fatal", "description", str(error), "")]
        findings = [*_examine_description(root, description, model), *_examine_model(model, gravity)]
    order = ("fatal", "warning", "info")
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def _examine_model(robot: RobotModel, gravity: ArrayLike) -> Iterator[Finding]:
    for body in robot.bodies:
        yield from _body(body)
    yield from _limits(robot)
    yield from _mass_matrix(robot)
    yield from _gravity_torque(robot, np.asarray(gravity, dtype=np.float64))
    for name, (followed, ratio, offset) in robot.mimics.items():
        yield Finding("info", f"joint {name!r}", f"follows {followed!r} as {ratio:g} q + {offset:g}", "")
    if robot.tip is None:
        yield Finding(
            "info", "tip", f"several leaves ({', '.join(robot.leaves)})", "choose a tip for payload and wrench"
        )


def _body(body: Body) -> Iterator[Finding]:
    name = f"link {body.name!r}"
    if body.mass == 0.0:
        yield Finding("warning", name, "has no mass, nor has anything fixed to it", "give it its inertia")
        return
    com = " ".join(f"{value:.4g}" for value in body.com)
    yield Finding("info", name, f"weighs {body.mass:.4g} kg with all that is fixed to it, centre of mass ({com}) m", "")
    yield from _impossible(name, body.inertia, " with all that is fixed to it")
    if body.mass < LIGHT:
        yield Finding("warning", name, f"weighs only {body.mass * 1e3:.3g} g", "mass is in kg: check it")
    gyration = float(np.sqrt(max(np.linalg.eigvalsh(body.inertia)[-1], 0.0) / body.mass))
    if not GYRATION[0] <= gyration <= GYRATION[1]:
        yield Finding(
            "warning",
            name,
            f"radius of gyration √(I/m) is {gyration:.3g} m, expected between {GYRATION[0]:g} and {GYRATION[1]:g}",
            "inertia is in kg m²: check it against the mass",
        )


def _impossible(name: str, inertia: Array, whose: str = "") -> Iterator[Finding]:
    """A negative moment can make the mass matrix indefinite; a broken triangle inequality cannot, and is common."""
    if (reason := why_impossible(inertia)) is not None:
        yield Finding(
            "warning" if "triangle" in reason else "fatal",
            name,
            reason + whose,
            "check the order of ixx … izz, the signs of the products, and that it is given about the centre of mass",
        )


def _limits(robot: RobotModel) -> Iterator[Finding]:
    for i, joint in enumerate(robot.joint_names):
        name = f"joint {joint!r}"
        if robot.effort_limits[i] == 0.0:
            yield Finding("fatal", name, "effort limit is 0", "no torque passes: write the drive's limit into <limit>")
        elif np.isinf(robot.effort_limits[i]):
            yield Finding("warning", name, "has no effort limit", "write the drive's limit into <limit effort>")
        if robot.velocity_limits[i] == 0.0:
            yield Finding("warning", name, "velocity limit is 0", "write the drive's limit into <limit velocity>")
        if robot.lower[i] == robot.upper[i]:
            yield Finding("warning", name, f"lower and upper limit are both {robot.lower[i]:g}", "give it its range")
        elif not robot.continuous[i] and np.isinf(robot.upper[i] - robot.lower[i]):
            yield Finding("warning", name, "has no position limits", "give it its range, or make it continuous")


def _mass_matrix(robot: RobotModel) -> Iterator[Finding]:
    """M = Σ m J_vᵀ J_v + J_ωᵀ I J_ω + armature must be positive definite; its null vector names the joint."""
    poses = body_poses(robot, next(_configurations(robot)))
    matrix = np.diag(robot.armature)
    for index, body in enumerate(robot.bodies):
        rotation, origin = poses[index]
        columns = jacobian_at(robot, poses, index, rotation @ body.com + origin)
        linear, angular = columns[:3], rotation.T @ columns[3:]
        matrix = matrix + body.mass * linear.T @ linear + angular.T @ body.inertia @ angular
    # scaled to a unit diagonal, so that a light wrist beside a heavy shoulder is not taken for a singularity
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    if values[0] < 1e-10:
        joint = robot.joint_names[int(np.argmax(np.abs(vectors[:, 0])))]
        yield Finding(
            "fatal",
            f"joint {joint!r}",
            "the mass matrix is not positive definite: the joint moves no inertia",
            "give the links below it their inertia, or the joint an armature",
        )


def _gravity_torque(robot: RobotModel, gravity: Array) -> Iterator[Finding]:
    """The largest |g(q)| among some configurations within the limits, against the effort limits."""
    largest = np.zeros(robot.n)
    for q in _configurations(robot):
        poses = body_poses(robot, q)
        torque = np.zeros(robot.n)
        for index, body in enumerate(robot.bodies):
            rotation, origin = poses[index]
            columns = jacobian_at(robot, poses, index, rotation @ body.com + origin)
            torque -= body.mass * (gravity @ columns[:3])
        largest = np.maximum(largest, np.abs(torque))
    for i, (joint, torque_, limit) in enumerate(zip(robot.joint_names, largest, robot.effort_limits, strict=True)):
        unit = "N" if i in _sliding(robot) else "Nm"
        unlimited = np.isinf(limit) or limit == 0.0
        if torque_ > IMPLAUSIBLE_TORQUE or (not unlimited and torque_ > OVERLOADED * limit):
            yield Finding(
                "fatal",
                f"joint {joint!r}",
                f"gravity alone takes {torque_:.3g} {unit}" + ("" if unlimited else f" of {limit:g} {unit}"),
                "masses are in kg, lengths in m: check the links below it",
            )
        elif not unlimited and torque_ > limit:
            yield Finding(
                "warning",
                f"joint {joint!r}",
                f"gravity takes up to {torque_:.3g} {unit} of {limit:g} {unit} within the joint limits",
                "the arm cannot hold itself everywhere: keep out of there, or check masses and limit",
            )


def _configurations(robot: RobotModel) -> Iterator[Array]:
    """Reproducible q within the limits; unlimited joints within ±π (rad) or ±1 m."""
    rng = np.random.default_rng(0)
    reach = np.array([1.0 if i in _sliding(robot) else np.pi for i in range(robot.n)])
    low = np.where(np.isinf(robot.lower), np.minimum(-reach, robot.upper), robot.lower)
    high = np.where(np.isinf(robot.upper), np.maximum(reach, low), robot.upper)
    for _ in range(SAMPLES):
        yield rng.uniform(low, high)


def _sliding(robot: RobotModel) -> set[int]:
    """Coordinates in metres: those of prismatic joints that follow none."""
    return {body.joint for body in robot.bodies if body.kind == "prismatic" and body.joint_name in robot.joint_names}


def _examine_description(root: ElementTree.Element, description: Description, robot: RobotModel) -> Iterator[Finding]:
    elements = {element.get("name", ""): element for element in root if tag_of(element) == "link"}
    for link in description.links.values():
        if robot.frames[link.name].body < 0:
            continue  # the base carries no joint: its inertia does not matter
        name, inertial = f"link {link.name!r}", link.inertial
        box = box_around(elements[link.name])
        if inertial is None or inertial.mass == 0.0:
            if has_shape(elements[link.name]) and (box is None or box.diagonal > SMALL):
                yield Finding("warning", name, "has a shape but no mass", "give it its inertia")
            continue
        # lumping may hide what is wrong with one link; about a link that stands alone it has been said
        if [frame.body for frame in robot.frames.values()].count(robot.frames[link.name].body) > 1:
            yield from _impossible(name, inertial.inertia)
        if box is not None and box.distance(inertial.com) > max(OUTSIDE[0], OUTSIDE[1] * box.diagonal):
            yield Finding(
                "warning",
                name,
                f"its centre of mass lies {box.distance(inertial.com):.3g} m outside its shape, which measures "
                f"{box.diagonal:.3g} m across",
                "lengths are in m, and <origin> of <inertial> is in the link frame: check it",
            )
    yield from _locked(description, robot)
    yield from _soft_limits(root, robot)


def _locked(description: Description, robot: RobotModel) -> Iterator[Finding]:
    """Branches that the model holds still: what they weigh, and whether they can stand where they are held."""
    for name, position in robot.locked.items():
        joint = description.joints[name]
        hanging = _below(description, joint.child)
        parts = [description.links[link].inertial for link in hanging]
        weight = sum(part.mass for part in parts if part is not None)
        yield Finding(
            "info",
            f"joint {name!r}",
            f"is not controlled: locked at {position:g}, where {weight:.4g} kg hang on it ({', '.join(hanging)})",
            "lock it where it stands, or control it",
        )
        if not joint.lower - 1e-9 <= position <= joint.upper + 1e-9:
            yield Finding(
                "warning",
                f"joint {name!r}",
                f"is locked at {position:g}, outside its limits {joint.lower:g} … {joint.upper:g}",
                "lock it where it stands: locked={joint: position}",
            )


def _below(description: Description, link: str) -> list[str]:
    """A link and all links below it."""
    found = [link]
    for joint in description.joints.values():  # parents come first
        if joint.parent in found:
            found.append(joint.child)
    return found


def _soft_limits(root: ElementTree.Element, robot: RobotModel) -> Iterator[Finding]:
    for element in root:
        if tag_of(element) != "joint" or element.get("name") not in robot.joint_names:
            continue
        for child in element:
            if tag_of(child) != "safety_controller":
                continue
            try:
                gain = float(child.get("k_velocity", "0"))
            except ValueError:
                gain = 0.0
            if gain == 0.0:
                yield Finding(
                    "warning",
                    f"joint {element.get('name')!r}",
                    "has a soft limit with k_velocity=0: ros2_control then clamps its effort to 0",
                    "give <safety_controller> a k_velocity, or take it out",
                )
