"""Fixtures that several test files share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[object]:
    """`ros_harness.Ros`: real processes in a private domain."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from ros_harness import Ros, private_domain

    with private_domain() as domain:
        session = Ros(domain, tmp_path)
        try:
            yield session
        finally:
            session.close()
