"""From URDF or xacro text to links and joints whose every number is checked; `urdf.py` makes a model of them.

urdf_parser_py reads the XML. It prints to stderr and is strict about tags that say nothing about dynamics
(transmissions, sensors, colours) and lax about those that do, so it is handed only what matters, and what it lets
through is checked here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from rnea_ros.model.errors import ModelError
from rnea_ros.model.inertia import Inertial
from rnea_ros.model.pose import rotation_from_rpy

Array = NDArray[np.float64]

# What of a description tells about dynamics: element -> its attributes and children
KEPT: dict[str, Any] = {
    "link": (
        ("name",),
        {
            "inertial": (
                (),
                {
                    "origin": (("xyz", "rpy"), {}),
                    "mass": (("value",), {}),
                    "inertia": (("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), {}),
                },
            )
        },
    ),
    "joint": (
        ("name", "type"),
        {
            "origin": (("xyz", "rpy"), {}),
            "axis": (("xyz",), {}),
            "parent": (("link",), {}),
            "child": (("link",), {}),
            "limit": (("lower", "upper", "effort", "velocity"), {}),
            "dynamics": (("damping", "friction"), {}),
            "mimic": (("joint", "multiplier", "offset"), {}),
        },
    ),
}
XACRO_SPACE = ("http://www.ros.org/wiki/xacro", "http://ros.org/wiki/xacro", "http://wiki.ros.org/xacro")


@dataclass(frozen=True)
class Link:
    """A link's name and inertial parameters."""

    name: str
    inertial: Inertial | None  # in the link frame; None where the description gives none


@dataclass(frozen=True)
class Joint:
    """A joint as the description gives it, in SI units and radians."""

    name: str
    type: str  # revolute, continuous, prismatic or fixed
    parent: str
    child: str
    rotation: Array  # (3, 3) of the child link at position 0, in the parent link
    translation: Array  # (3,) m
    axis: Array  # (3,) unit vector, child link frame
    lower: float
    upper: float
    effort: float
    velocity: float
    damping: float
    friction: float
    mimic: tuple[str, float, float] | None  # joint followed, multiplier, offset

    @property
    def movable(self) -> bool:
        """Whether it is not fixed."""
        return self.type != "fixed"


@dataclass(frozen=True)
class Description:
    """A tree of links: every joint's parent link comes before its child in `joints`."""

    name: str
    root: str
    links: Mapping[str, Link]
    joints: Mapping[str, Joint]  # depth first, in the order in which the text gives siblings


def read_tree(source: str | os.PathLike[str], xacro_args: Mapping[str, str] | None = None) -> ElementTree.Element:
    """The XML tree of a URDF given as text or as a file, xacro expanded. Raises ModelError."""
    text: str | bytes
    path: str | None = None
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        text = source.lstrip("\ufeff \t\r\n")
    else:
        if isinstance(source, str) and not source.strip():
            raise ModelError("robot description is empty")
        try:
            path = os.fspath(source)
            with open(path, "rb") as file:
                text = file.read()
        except (OSError, TypeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            shown = str(source) if len(str(source)) <= 200 else str(source)[:200] + "..."
            raise ModelError(f"cannot read robot description {shown!r}: {reason}") from None
    root = _parse(text)
    if _is_xacro(root) or (path is not None and str(path).endswith(".xacro")):
        return _parse(_expand_xacro(text, path, xacro_args or {}))
    return root


def describe(root: ElementTree.Element) -> Description:
    """Checked links and joints of a URDF's XML tree. Raises ModelError that names the link or joint."""
    if tag_of(root) != "robot":
        raise ModelError(f"not a URDF: its root element is <{tag_of(root)}>, not <robot>")
    links: dict[str, Link] = {}
    joints: dict[str, Joint] = {}
    for element in root:
        kind = tag_of(element)
        if kind not in KEPT:
            continue
        name = element.get("name", "")
        if not name.strip():
            raise ModelError(f"a <{kind}> has no name")
        if name in links if kind == "link" else name in joints:
            raise ModelError(f"{kind} {name!r} stands there twice: names must be unique")
        parsed = _parse_element(element, f"{kind} {name!r}")
        if kind == "link":
            links[name] = _link(parsed)
        else:
            joints[name] = _joint(parsed)
    return Description(root.get("name") or "robot", *_tree(links, joints))


def _parse(text: str | bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ModelError(f"robot description is not well-formed XML: {_one_line(error)}") from None


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


def tag_of(element: ElementTree.Element) -> str:
    """Tag without its namespace: `<robot xmlns=...>` is common."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _is_xacro(root: ElementTree.Element) -> bool:
    """Whether any element is xacro's (a mere namespace declaration is left over in expanded files, too)."""
    return any(isinstance(e.tag, str) and e.tag.startswith(tuple("{" + s for s in XACRO_SPACE)) for e in root.iter())


def _expand_xacro(text: str | bytes, path: str | None, arguments: Mapping[str, str]) -> str:
    try:
        import xacro
    except ImportError:
        raise ModelError(
            "the description is xacro: install the xacro package (pip install xacro, or ros-<distro>-xacro), or expand "
            "it first: xacro robot.urdf.xacro > robot.urdf"
        ) from None
    mappings = {str(key): str(value) for key, value in arguments.items()}
    try:
        if path is not None:
            document = xacro.process_file(path, mappings=mappings)
        else:
            xacro.init_stacks(None)
            document = xacro.parse(text)
            xacro.process_doc(document, mappings=mappings)
        return str(document.documentElement.toxml())
    except Exception as error:  # xacro evaluates the file's own expressions: anything may come out
        raise ModelError(f"xacro cannot expand the description: {type(error).__name__}: {_one_line(error)}") from None


def _parse_element(element: ElementTree.Element, what: str) -> Any:
    """urdf_parser_py's Link or Joint of one element. Raises ModelError that starts with `what`."""
    from urdf_parser_py import urdf  # here, so that `load_dh` does not need it

    kept = _keep_element(element, KEPT[tag_of(element)], what)
    for limit in kept.iter("limit"):
        for name in ("effort", "velocity"):
            limit.attrib.setdefault(name, "inf")
    parser = urdf.Link if kept.tag == "link" else urdf.Joint
    try:
        return parser.from_xml_string(ElementTree.tostring(kept, encoding="unicode"))
    except Exception as error:  # it raises ParseError, AssertionError, KeyError and bare Exception
        raise ModelError(f"{what}: {_one_line(error)}") from None


def _keep_element(element: ElementTree.Element, keep: Any, owner: str) -> ElementTree.Element:
    """A copy with only the attributes and children in `keep`."""
    attributes, children = keep
    copy = ElementTree.Element(tag_of(element), {k: element.attrib[k] for k in attributes if k in element.attrib})
    for child in element:
        tag = tag_of(child)
        if tag not in children:
            continue
        if copy.find(tag) is not None:
            raise ModelError(f"{owner}: <{tag}> stands there twice")
        copy.append(_keep_element(child, children[tag], owner))
    return copy


def _numbers(what: str, quantity: str, values: Any, count: int) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.shape != (count,):
        raise ModelError(f"{what}: {quantity} has {array.size} numbers, expected {count}")
    if not np.isfinite(array).all():
        raise ModelError(f"{what}: {quantity} is not finite ({' '.join(f'{v:g}' for v in array)})")
    return array


def _pose(what: str, origin: Any) -> tuple[Array, Array]:
    if origin is None:
        return np.eye(3), np.zeros(3)
    roll, pitch, yaw = _numbers(what, "origin rpy", origin.rpy if origin.rpy is not None else (0, 0, 0), 3)
    return rotation_from_rpy(roll, pitch, yaw), _numbers(
        what, "origin xyz", origin.xyz if origin.xyz is not None else (0, 0, 0), 3
    )


def _link(link: Any) -> Link:
    what = f"link {link.name!r}"
    if link.inertial is None:
        return Link(link.name, None)
    if link.inertial.mass is None:
        raise ModelError(f"{what}: <inertial> without <mass>")
    if link.inertial.inertia is None:
        raise ModelError(f"{what}: <inertial> without <inertia>")
    (mass,) = _numbers(what, "mass", [link.inertial.mass], 1)
    if mass < 0.0:
        raise ModelError(f"{what}: mass is negative ({mass:g} kg)")
    xx, xy, xz, yy, yz, zz = _numbers(
        what, "inertia", [getattr(link.inertial.inertia, key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")], 6
    )
    about_com = Inertial(float(mass), np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    return Link(link.name, about_com.seen_from(*_pose(f"{what}, inertial", link.inertial.origin)))


def _joint(joint: Any) -> Joint:
    what = f"joint {joint.name!r}"
    if joint.type in ("floating", "planar"):
        raise ModelError(
            f"{what} is {joint.type}: only robots with a fixed base and revolute, continuous, prismatic or "
            "fixed joints can be loaded"
        )
    if joint.type not in ("revolute", "continuous", "prismatic", "fixed"):
        raise ModelError(f"{what}: unknown type {joint.type!r}; use revolute, continuous, prismatic or fixed")
    rotation, translation = _pose(what, joint.origin)
    lower, upper, effort, velocity = _limits(what, joint)
    dynamics = joint.dynamics
    damping, friction = _numbers(
        what, "dynamics", [getattr(dynamics, key, None) or 0.0 for key in ("damping", "friction")], 2
    )
    if min(damping, friction) < 0.0:
        raise ModelError(f"{what}: damping and friction must not be negative")
    return Joint(
        joint.name, joint.type, joint.parent, joint.child, rotation, translation, _axis(what, joint),
        lower, upper, effort, velocity, float(damping), float(friction), _mimic(what, joint.mimic),
    )  # fmt: skip


def _axis(what: str, joint: Any) -> Array:
    """Unit axis; URDF's default is x."""
    axis = _numbers(what, "axis", (1.0, 0.0, 0.0) if joint.axis is None else joint.axis, 3)
    length = float(np.linalg.norm(axis))
    if joint.type == "fixed":
        return np.array([1.0, 0.0, 0.0])
    if not 1e-6 < length < 1e150:
        raise ModelError(f"{what}: axis ({' '.join(f'{v:g}' for v in axis)}) has no direction")
    return axis / length


def _limits(what: str, joint: Any) -> tuple[float, float, float, float]:
    """lower, upper, effort, velocity; infinite where the description says nothing."""
    limit = joint.limit
    if limit is None:
        return -np.inf, np.inf, np.inf, np.inf
    values = [limit.lower, limit.upper, limit.effort, limit.velocity]
    if np.isnan(values).any():
        raise ModelError(f"{what}: limit is not a number")
    lower, upper, effort, velocity = (float(v) for v in values)
    if effort < 0.0 or velocity < 0.0:
        raise ModelError(f"{what}: effort and velocity limits must not be negative")
    if joint.type == "continuous":
        return -np.inf, np.inf, effort, velocity
    if joint.type != "fixed" and lower > upper:
        raise ModelError(f"{what}: lower limit {lower:g} is above upper limit {upper:g}")
    return lower, upper, effort, velocity


def _mimic(what: str, mimic: Any) -> tuple[str, float, float] | None:
    if mimic is None:
        return None
    multiplier, offset = _numbers(
        what,
        "mimic",
        [1.0 if mimic.multiplier is None else mimic.multiplier, 0.0 if mimic.offset is None else mimic.offset],
        2,
    )
    return mimic.joint, float(multiplier), float(offset)


def _tree(
    links: Mapping[str, Link], joints: Mapping[str, Joint]
) -> tuple[str, Mapping[str, Link], Mapping[str, Joint]]:
    """The root's name, links and joints from the root outwards. Raises ModelError for what is no tree."""
    if not links:
        raise ModelError("robot description has no link")
    parent_joint: dict[str, Joint] = {}
    children: dict[str, list[Joint]] = {name: [] for name in links}
    for joint in joints.values():
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                raise ModelError(f"joint {joint.name!r}: unknown {role} link {link!r}")
        if joint.child in parent_joint:
            raise ModelError(
                f"link {joint.child!r} is the child of two joints, {parent_joint[joint.child].name!r} and "
                f"{joint.name!r}: closed loops cannot be loaded"
            )
        parent_joint[joint.child] = joint
        children[joint.parent].append(joint)
    roots = [name for name in links if name not in parent_joint]
    if not roots:
        raise ModelError("robot description has no root: its joints form a closed loop")
    if len(roots) > 1:
        raise ModelError(f"robot description has {len(roots)} roots ({', '.join(roots)}): one joint each is missing")
    order: dict[str, Joint] = {}
    stack = list(reversed(children[roots[0]]))
    while stack:
        joint = stack.pop()
        order[joint.name] = joint
        stack.extend(reversed(children[joint.child]))
    if len(order) != len(joints):
        astray = next(name for name in joints if name not in order)
        raise ModelError(f"joint {astray!r} is part of a closed loop that no joint connects to {roots[0]!r}")
    return roots[0], links, order
