"""What all tests share: a ROS domain away from any robot, real ROS processes, and the marker `full`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rnea_ros.nodes.domain import private_domain

_session = ExitStack()  # until the interpreter ends
os.environ["ROS_DOMAIN_ID"] = str(_session.enter_context(private_domain()))
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the long tests too (marker `full`)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--full"):
        for item in items:
            if item.get_closest_marker("full"):
                item.add_marker(pytest.mark.skip(reason="long; run with --full"))


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[object]:
    """`ros_harness.Ros`: real processes in a domain of their own."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from ros_harness import Ros

    with private_domain() as domain:
        session = Ros(domain, tmp_path)
        try:
            yield session
        finally:
            session.close()
