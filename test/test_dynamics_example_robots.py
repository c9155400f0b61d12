"""Arms, hands, quadrupeds and humanoids of the package example-robot-data, with a fixed base, judged by Pinocchio.

Pinocchio moves mimic joints independently unless asked; we fold them, and compare through the map E of `Judge`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pinocchio_judge import Judge, pin
from test_model_against_pinocchio import MASSLESS, REFUSED, example_robots

from rnea_ros import InverseDynamics, load_urdf
from rnea_ros.model.robot import ModelError, RobotModel

STATES = 20


def load(path: Path) -> RobotModel:
    """With joints locked that move nothing but links without mass."""
    if path.stem not in MASSLESS:
        return load_urdf(path, friction=False)
    with pytest.raises(ModelError) as caught:
        load_urdf(path)
    named = str(caught.value).partition("so joint ")[2].partition(" would")[0]
    return load_urdf(path, locked={name.strip("'"): 0.0 for name in named.split(", ")}, friction=False)


@pytest.mark.skipif(not example_robots(), reason="example-robot-data (pip install example-robot-data) is not installed")
@pytest.mark.parametrize(
    "path", [path for path in example_robots() if path.stem not in REFUSED], ids=lambda path: path.stem
)
def test_torque_equals_pinocchio(path: Path) -> None:
    robot = load(path)
    judge = Judge(robot, path)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, STATES, robot.n))
    theirs = np.array(
        [
            judge.fold(pin.rnea(judge.model, judge.data, judge.configuration(a), judge.velocity(b), judge.velocity(c)))
            for a, b, c in zip(q, qd, qdd, strict=True)
        ]
    )
    dynamics = InverseDynamics(robot, backend="python")
    scale = np.abs(theirs).max()
    assert np.abs(dynamics.torque(q, qd, qdd) - theirs).max() < 1e-10 * scale
    assert np.abs(dynamics.torque(q[0], qd[0], qdd[0]) - theirs[0]).max() < 1e-10 * scale
