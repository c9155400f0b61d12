"""Where a message's frame stands in the tip frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.errors import Refusal
from rnea_ros.model.errors import ModelError
from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]


def frame_in_tip(robot: RobotModel, name: str, what: str) -> tuple[Array, Array]:
    """Rotation (3, 3) and translation (3,) that take coordinates of the frame `name` to the tip frame.

    An empty name is the tip itself. Raises Refusal, which begins with `what`, for a frame that is not on the tip body.
    """
    try:
        tip = robot.tip_frame
        frame = robot.frame(name) if name else tip
    except ModelError as error:
        raise Refusal(f"{what}: {error}") from None
    if frame.body != tip.body:
        raise Refusal(f"{what}: frame {name!r} is not fixed to the tip {robot.tip!r}")
    rotation = tip.rotation.T @ frame.rotation
    return rotation, tip.rotation.T @ (frame.translation - tip.translation)
