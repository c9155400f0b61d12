"""A ROS domain of one's own, so that a demonstration or a test reaches no other process, and no robot."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

DOMAINS = range(1, 102)  # above 101 the ports of DDS meet those that Linux hands out to clients


@contextlib.contextmanager
def private_domain() -> Iterator[int]:
    """A ROS domain that nobody else on this machine took this way, for as long as the context lives.

    Whoever uses it sets ROS_DOMAIN_ID to it and ROS_AUTOMATIC_DISCOVERY_RANGE to LOCALHOST for its processes. Raises
    RuntimeError where all domains are taken.
    """
    for domain in DOMAINS:
        with Path(tempfile.gettempdir(), f"rnea_ros_domain_{os.getuid()}_{domain}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield domain
            return
    raise RuntimeError(f"all {len(DOMAINS)} ROS domains are taken; end some of the processes that hold them")
