"""What a process can do so that a busy machine does not delay its loop."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
from contextlib import suppress
from pathlib import Path

# <sys/mman.h> of Linux. ON_FAULT keeps what was touched once; without it every thread's whole stack would be filled in.
_MCL_CURRENT, _MCL_FUTURE, _MCL_ON_FAULT = 1, 2, 4
_CAP_IPC_LOCK = 14  # <linux/capability.h>
_LIMITS = "in /etc/security/limits.d/rnea_ros.conf, log in again"


def become_real_time(priority: int) -> list[str]:
    """Give every thread of this process SCHED_FIFO `priority` (1 to 99) and keep its memory from being paged out.

    Threads that start later inherit the priority of the thread that starts them. Call it once everything heavy is
    done, compilation above all: until it waits, such a thread keeps its core from everybody else.

    Returns one line for each of the two that the system refuses, with what to grant; none means that both are in force.
    """
    return [refusal for refusal in (_raise_priority(priority), _lock_memory()) if refusal]


def freeze_garbage() -> None:
    """Collect now, and keep what is alive out of later collections, which would scan all of it inside the loop.

    With Numba loaded this takes some 40 ms: call it before the first command, not between two.
    """
    gc.collect()
    gc.freeze()


def _raise_priority(priority: int) -> str:
    if not hasattr(os, "sched_setscheduler"):
        return f"real-time priority {priority} refused: this system has no SCHED_FIFO"
    try:
        for thread in _threads():
            with suppress(ProcessLookupError):  # it ended meanwhile
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return (
            f"real-time priority {priority} refused: write '<user> - rtprio {priority}' {_LIMITS}; "
            f"in a container: --ulimit rtprio={priority} --cap-add SYS_NICE"
        )
    except OSError as error:
        return f"real-time priority {priority} refused: {error.strerror}; priorities go from 1 to 99"
    return ""


def _threads() -> list[int]:
    return [int(entry.name) for entry in Path("/proc/self/task").iterdir()]


def _lock_memory() -> str:
    advice = f"write '<user> - memlock unlimited' {_LIMITS}; in a container: --ulimit memlock=-1"
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    elif not _may_lock_memory():  # a finite limit would be felt later, as allocations that fail
        return f"memory lock refused, only {soft // 1024} KiB are allowed: {advice}"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ON_FAULT) != 0:
        return f"memory lock refused ({os.strerror(ctypes.get_errno())}): {advice}"
    return ""


def _may_lock_memory() -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_IPC_LOCK & 1)
    return False
