"""Random robots for property tests: trees with everything that a URDF may hold, reproducible from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class RandomRobot:
    """A URDF text and the seed that made it (hypothesis prints it when a test fails)."""

    seed: int
    joints: int
    mimic: bool
    xml: str

    def __repr__(self) -> str:
        return f"random_robot(seed={self.seed}, joints={self.joints}, mimic={self.mimic})"

    @property
    def rng(self) -> np.random.Generator:
        """Fresh generator for states of this robot."""
        return np.random.default_rng([self.seed, self.joints])


def random_robot(seed: int, joints: int = 6, mimic: bool = False, branches: bool = True) -> RandomRobot:
    """A tree with `joints` joints that move (mimics included) and fixed ones in between.

    Revolute, continuous and prismatic joints about oblique and coordinate axes that are not normalised, rotated joint
    and inertial frames, offset centres of mass, links without mass between links with mass, a tilted base. With
    `mimic` some joints follow others. Every inertia is that of a real body.
    """
    rng = np.random.default_rng(seed)
    links, elements, movable, parents = ["base"], [_link("base", rng, rng.random() < 0.5)], [], {}
    made = 0
    while made < joints or not _last_has_mass(elements[-1]):
        parent = links[-1] if not branches or rng.random() < 0.7 else links[rng.integers(len(links))]
        child = f"link_{len(links)}"
        kind = "fixed" if made >= joints or rng.random() < 0.25 else rng.choice(["revolute", "continuous", "prismatic"])
        name = f"joint_{len(links)}"
        follows = ""
        if kind != "fixed":
            made += 1
            if mimic and movable and rng.random() < 0.4:
                follows = (
                    f'<mimic joint="{rng.choice(movable)}" multiplier="{rng.uniform(-2, 2):.6f}" '
                    f'offset="{rng.uniform(-1, 1):.6f}"/>'
                )
            movable.append(name)
        elements.append(_joint(name, kind, parent, child, rng, follows))
        elements.append(_link(child, rng, made >= joints or rng.random() < 0.8))
        parents[child] = parent
        links.append(child)
    # a branch that ends in a link without mass gets some
    for leaf in set(links) - set(parents.values()):
        index = next(i for i, text in enumerate(elements) if text.startswith(f'<link name="{leaf}"'))
        if not _last_has_mass(elements[index]):
            elements[index] = _link(leaf, rng, True)
    return RandomRobot(seed, joints, mimic, f'<robot name="random_{seed}">' + "\n".join(elements) + "</robot>")


def random_robots(
    min_joints: int = 1, max_joints: int = 12, mimic: bool = False, branches: bool = True
) -> st.SearchStrategy[RandomRobot]:
    """Hypothesis strategy over `random_robot`."""
    return st.builds(
        random_robot,
        seed=st.integers(0, 2**32 - 1),
        joints=st.integers(min_joints, max_joints),
        mimic=st.just(mimic),
        branches=st.just(branches),
    )


def random_inertia(rng: np.random.Generator, mass: float, size: float = 0.2) -> np.ndarray:
    """Inertia (3, 3) about the centre of mass of a random cloud of points: what a real body can have."""
    points = rng.normal(scale=size * rng.uniform(0.1, 1.0, size=3), size=(8, 3))
    points -= points.mean(axis=0)
    points = points @ _random_rotation(rng).T
    return sum((mass / 8) * (p @ p * np.eye(3) - np.outer(p, p)) for p in points)


def _random_rotation(rng: np.random.Generator) -> np.ndarray:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def _last_has_mass(element: str) -> bool:
    return "<inertial>" in element


def _text(values: np.ndarray) -> str:
    return " ".join(f"{value:.9g}" for value in values)


def _origin(rng: np.random.Generator, reach: float) -> str:
    rpy = rng.uniform(-np.pi, np.pi, 3) if rng.random() < 0.7 else rng.integers(-2, 3, 3) * (np.pi / 2)
    return f'<origin xyz="{_text(rng.uniform(-reach, reach, 3))}" rpy="{" ".join(f"{v:.17g}" for v in rpy)}"/>'


def _link(name: str, rng: np.random.Generator, with_mass: bool) -> str:
    if not with_mass:
        return f'<link name="{name}"/>'
    mass = float(np.exp(rng.uniform(np.log(0.05), np.log(10.0))))
    i = random_inertia(rng, mass)
    return (
        f'<link name="{name}"><inertial>{_origin(rng, 0.2)}<mass value="{mass:.9g}"/>'
        f'<inertia ixx="{i[0, 0]:.17g}" ixy="{i[0, 1]:.17g}" ixz="{i[0, 2]:.17g}" iyy="{i[1, 1]:.17g}" '
        f'iyz="{i[1, 2]:.17g}" izz="{i[2, 2]:.17g}"/></inertial></link>'
    )


def _joint(name: str, kind: str, parent: str, child: str, rng: np.random.Generator, follows: str) -> str:
    axis = rng.normal(size=3) if rng.random() < 0.5 else np.roll([rng.choice([-1.0, 1.0]), 0.0, 0.0], rng.integers(3))
    limit = {"revolute": 'lower="-3" upper="3"', "prismatic": 'lower="-0.5" upper="0.5"', "continuous": ""}.get(kind)
    moving = "" if limit is None else f'<axis xyz="{_text(axis)}"/><limit {limit} effort="100" velocity="3"/>{follows}'
    return (
        f'<joint name="{name}" type="{kind}">{_origin(rng, 0.5)}<parent link="{parent}"/><child link="{child}"/>'
        f"{moving}</joint>"
    )
