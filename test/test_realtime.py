"""Real-time priority and memory lock, in processes of their own: both are for a whole process."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rnea_ros.nodes.realtime import freeze_garbage

ASK = """
import json, os, sys, threading
from pathlib import Path
from rnea_ros.nodes.realtime import become_real_time
if sys.argv[2] == "nobody":
    import resource
    for limit in (resource.RLIMIT_RTPRIO, resource.RLIMIT_MEMLOCK):
        resource.setrlimit(limit, (0, 0))
    if os.getuid() == 0:
        os.setuid(65534)
release = threading.Event()
def start():
    threading.Thread(target=release.wait).start()
start()
refusals = become_real_time(int(sys.argv[1]))
start()
threads = [int(entry.name) for entry in Path("/proc/self/task").iterdir()]
locked = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmLck")]
print(json.dumps({
    "refusals": refusals,
    "threads": [(os.sched_getscheduler(thread), os.sched_getparam(thread).sched_priority) for thread in threads],
    "locked": int(locked[0].split()[1]),
}))
release.set()
"""


def ask(priority: int, user: str = "same"):
    root = Path(__file__).parents[1]
    answer = subprocess.run(
        [sys.executable, "-c", ASK, str(priority), user],
        env={**os.environ, "PYTHONPATH": str(root)}, cwd=root, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    return json.loads(answer.stdout)


def test_every_thread_gets_the_priority_and_memory_is_locked():
    answer = ask(7)
    if answer["refusals"]:
        pytest.skip("this user may not use real-time priorities: " + answer["refusals"][0])
    assert len(answer["threads"]) >= 3 and all(thread == [os.SCHED_FIFO, 7] for thread in answer["threads"])
    assert answer["locked"] > 1000  # KiB


def test_a_refusal_says_in_one_line_what_to_grant():
    answer = ask(7, "nobody")
    priority, memory = answer["refusals"]
    assert "'<user> - rtprio 7' in /etc/security/limits.d/" in priority
    assert "'<user> - memlock unlimited' in /etc/security/limits.d/" in memory
    assert "\n" not in priority + memory
    assert len(answer["threads"]) >= 3 and all(thread == [os.SCHED_OTHER, 0] for thread in answer["threads"])
    assert answer["locked"] == 0


def test_a_priority_that_does_not_exist_is_named():
    assert "priorities go from 1 to 99" in ask(100)["refusals"][0]


def test_what_is_alive_is_not_scanned_again():
    try:
        freeze_garbage()
        assert gc.get_freeze_count() > 1000
    finally:
        gc.unfreeze()
