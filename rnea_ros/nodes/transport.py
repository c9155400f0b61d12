"""How messages travel: the qualities of service that the nodes share, and the transport between processes."""

from __future__ import annotations

import os

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from rnea_ros.model.errors import ModelError
from rnea_ros.share import share_file

# A stream: an old message is worth nothing once there is a newer one, and a reliable reader acknowledges each.
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


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
