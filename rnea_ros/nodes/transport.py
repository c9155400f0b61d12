"""How messages travel between processes of one machine."""

from __future__ import annotations

import os

from rnea_ros.model.errors import ModelError
from rnea_ros.share import share_file


def leave_out_shared_memory() -> None:
    """Call before `rclpy.init` in a process that others must be able to outlive, and in those that it writes to.

    Fast DDS passes messages through shared memory under locks that the processes on both sides take. One that is
    frozen while it holds such a lock (SIGSTOP, a debugger, swapping) blocks every other process that writes there for
    a second, the publisher of the joint states included. Over UDP it blocks nobody.

    FASTDDS_BUILTIN_TRANSPORTS alone does it where the discovery range is not LOCALHOST; there the middleware adds
    shared memory by itself, and a profile keeps it without readers. What the environment says already goes first;
    other middlewares pass this over.
    """
    os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
    if "FASTRTPS_DEFAULT_PROFILES_FILE" in os.environ:
        return
    try:
        profile = share_file("config", "fast_dds_without_shared_memory.xml")
    except ModelError:  # not installed completely: shared memory still works, but for the case above
        return
    os.environ.setdefault("FASTDDS_DEFAULT_PROFILES_FILE", str(profile))
