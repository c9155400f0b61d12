"""What controller and watchdog say and hear in the same words: diagnostics, log lines, payloads."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import InertiaStamped
from numpy.typing import NDArray

Array = NDArray[np.float64]

SECOND = 1_000_000_000  # ns


def diagnostics(
    name: str, level: bytes, text: str, hardware: str, values: Mapping[str, str], stamp: int
) -> DiagnosticArray:
    """One status called `name`, level one of DiagnosticStatus; `stamp` in ns."""
    status = DiagnosticStatus(
        level=level,
        name=name,
        message=text,
        hardware_id=hardware,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    message = DiagnosticArray(status=[status])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, SECOND)
    return message


def log(logger: Any, messages: Iterable[tuple[str, str]]) -> None:
    """Messages as the control room collects them: (level, line), level one of "info", "warning", "error"."""
    for level, line in messages:
        if level == "error":  # three lines, because rclpy wants one severity for each line that logs
            logger.error(line)
        elif level == "warning":
            logger.warning(line)
        else:
            logger.info(line)


def internal_error(error: Exception) -> str:
    """One line for a mistake in our own program: what, and where."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"internal error: {type(error).__name__}: {error} ({place.filename}:{place.lineno}); please report it"


def payload(message: InertiaStamped) -> tuple[float, Array, Array, str]:
    """Mass kg, com (3,) m, inertia (3, 3) kg m² about com, and the frame of both."""
    m = message.inertia
    inertia = np.array([[m.ixx, m.ixy, m.ixz], [m.ixy, m.iyy, m.iyz], [m.ixz, m.iyz, m.izz]])
    return m.m, np.array([m.com.x, m.com.y, m.com.z]), inertia, message.header.frame_id
