"""How large a link is: the box around the primitive shapes that a description gives for viewers and collisions."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from rnea_ros.model.description import tag_of
from rnea_ros.model.pose import rotation_from_rpy

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Box:
    """Axis-aligned in the link frame."""

    low: Array  # (3,) m
    high: Array  # (3,) m

    @property
    def diagonal(self) -> float:
        """Length of its diagonal, m."""
        return float(np.linalg.norm(self.high - self.low))

    def distance(self, point: Array) -> float:
        """How far a point (3,) m lies outside, m; 0 inside."""
        return float(np.linalg.norm(np.maximum(np.maximum(self.low - point, point - self.high), 0.0)))


def has_shape(link: ElementTree.Element) -> bool:
    """Whether a <link> element has any geometry, meshes included."""
    return any(tag_of(part) in ("visual", "collision") for part in link)


def box_around(link: ElementTree.Element) -> Box | None:
    """The box around the boxes, cylinders and spheres of a <link> element.

    None where there are none, where a mesh leaves the size unknown, and where the numbers make no sense: shapes are no
    part of the dynamics, so nothing is refused for them.
    """
    corners: list[Array] = []
    for part in link:
        if tag_of(part) not in ("visual", "collision"):
            continue
        try:
            half, rotation, center = _extent(part)
        except (ValueError, TypeError, LookupError):
            return None
        reach = np.abs(rotation) @ half
        corners += [center - reach, center + reach]
    if not corners or not np.isfinite(corners).all():
        return None
    return Box(np.min(corners, axis=0), np.max(corners, axis=0))


def _extent(part: ElementTree.Element) -> tuple[Array, Array, Array]:
    """Half sizes (3,) m along the shape's own axes, and its pose in the link frame. Raises for what is no primitive."""
    children = {tag_of(child): child for child in part}
    (shape,) = children["geometry"]
    kind = tag_of(shape)
    if kind == "box":
        half = 0.5 * _vector(shape.attrib["size"])
    elif kind == "cylinder":
        radius = float(shape.attrib["radius"])
        half = np.array([radius, radius, 0.5 * float(shape.attrib["length"])])
    elif kind == "sphere":
        half = np.full(3, float(shape.attrib["radius"]))
    else:
        raise LookupError(kind)
    origin = children.get("origin")
    if origin is None:
        return half, np.eye(3), np.zeros(3)
    roll, pitch, yaw = _vector(origin.get("rpy", "0 0 0"))
    return half, rotation_from_rpy(roll, pitch, yaw), _vector(origin.get("xyz", "0 0 0"))


def _vector(text: str) -> Array:
    x, y, z = (float(word) for word in text.split())
    return np.array([x, y, z])
