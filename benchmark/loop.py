"""How fast a state becomes a command: round trips over loopback DDS, each contestant in a process of its own.

A source sends joint states on an absolute schedule and stamps them as it sends them; a contestant answers each with a
command. A round trip runs from just before the state is published until just after the command is taken, in the
source's one thread. Every message goes by UDP, as in the nodes (see `nodes/transport.py`).

    python benchmark/loop.py                    1 kHz, idle machine: median over interleaved repeats
    python benchmark/loop.py --asked            the controller while a client asks for parameters and services
    python benchmark/loop.py --load             every core busy, without and with real-time priority
    python benchmark/loop.py --rates            the largest rate at which a contestant answers everything

lost        states never answered, though not superseded
late        answers that took longer than one period
superseded  states replaced by newer ones before they were read: the reader holds only the newest
CPU         processor time of the contestant's whole process per state
MiB         memory in use after warm-up, and how much of it was added in the run
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rnea_ros.nodes.domain import private_domain  # noqa: E402 - it runs without being installed

PRIORITY = 60
SOURCE_PRIORITY = PRIORITY + 1
RATES = [1000, 1500, 2000, 3000, 4000, 5000, 6000, 8000]
ASKING = 20.0  # requests per second


@dataclass(frozen=True)
class Contestant:
    """Arguments of Python, the mode that the source knows it by, and whether a client asks it all the time."""

    arguments: Sequence[str]
    mode: str = "echo"
    asked: bool = False

    def command(self, rate: float, priority: int) -> list[str]:
        command = [sys.executable, "-m", *self.arguments]
        if self.mode == "echo":
            return [*command, str(priority)]
        return [*command, "-p", f"rate:={rate}", "-p", f"realtime_priority:={priority}"]


CONTROLLER = (
    "rnea_ros.nodes.controller", "--ros-args", "--log-level", "warn",
    "--params-file", str(ROOT / "config" / "panda.yaml"), "-p", "history.directory:=/tmp",
)  # fmt: skip
ALL_TERMS = (*CONTROLLER, "-p", "terms_rate:=1000.0")

STOCK, RAW = "typed echo, stock executor", "raw echo, events executor"
TRACKING, ASKED = "controller, tracking, all terms", "the same, asked all the time"
CONTESTANTS = {
    STOCK: Contestant(("benchmark.loop_echo", "stock", "typed")),
    "typed echo, events executor": Contestant(("benchmark.loop_echo", "events", "typed")),
    RAW: Contestant(("benchmark.loop_echo", "events", "raw")),
    "controller, gravity compensation": Contestant(CONTROLLER, "gravity_compensation"),
    TRACKING: Contestant(ALL_TERMS, "tracking"),
    ASKED: Contestant(ALL_TERMS, "tracking", asked=True),
}
USUAL = [name for name in CONTESTANTS if name != ASKED]

Result = dict[str, Any]


def run(name: str, rate: float, seconds: float, priority: int = 0) -> Result:
    """One contestant, one source; the percentiles, counts and costs of the run."""
    contestant = CONTESTANTS[name]
    with ExitStack() as stack:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "ROS_DOMAIN_ID": str(stack.enter_context(private_domain())),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        }
        process = stack.enter_context(ended(contestant.command(rate, priority), environment))
        if contestant.asked:
            client = [sys.executable, "-m", "benchmark.loop_client", str(ASKING)]
            client_process = stack.enter_context(ended(client, environment))
        arguments = [contestant.mode, str(process.pid), str(rate), str(seconds), str(SOURCE_PRIORITY)]
        answer = subprocess.run(
            [sys.executable, "-m", "benchmark.loop_source", *arguments],
            env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=seconds + 120.0, check=False,
        )  # fmt: skip
        if answer.returncode or process.poll() is not None:
            raise SystemExit(f"{name}: the run failed")
        result: Result = json.loads(answer.stdout)
        if contestant.asked:
            result["asked"] = told(client_process)
        if contestant.mode == "echo":
            result.update(told(process))
    unanswered = result["sent"] - result["answered"]
    not_read = result["sent"] - result["read"] - result["lost_under_way"]
    result["superseded"] = min(max(not_read, 0), unanswered)
    result["lost"] = unanswered - result["superseded"]
    for label, share in (("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 99.9)):
        result[label] = percentile(result["trips"], share)
    result["longest"] = max(result.pop("trips"))
    return result


def percentile(values: list[float], share: float) -> float:
    return statistics.quantiles(values, n=1000, method="inclusive")[round(10 * share) - 1]


@contextmanager
def ended(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone when the context ends."""
    process = subprocess.Popen(
        command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def told(process: subprocess.Popen[str]) -> Result:
    """What a process prints at SIGINT: one line of JSON, the last."""
    process.send_signal(signal.SIGINT)
    report, _ = process.communicate(timeout=20)
    result: Result = json.loads(report.splitlines()[-1])
    return result


COLUMNS = {
    "p50": "p50 µs", "p90": "p90", "p99": "p99", "p99.9": "p99.9", "longest": "longest", "lost": "lost",
    "late": "late", "superseded": "superseded", "cpu": "CPU µs", "memory": "MiB", "grown": "added",
}  # fmt: skip
SUMS = ("lost", "late", "superseded")


def table(results: dict[str, list[Result]]) -> None:
    """Medians over the repeats; lost, late and superseded are sums, longest is the longest of all."""
    print(f"{'':33s}" + "".join(f"{title:>11s}" for title in COLUMNS.values()) + f"{'of states':>11s}")
    for name, repeats in results.items():
        cells = [f"{figure(key, repeats):11.{1 if key == 'grown' else 0}f}" for key in COLUMNS]
        print(f"{name:33s}" + "".join(cells) + f"{sum(result['sent'] for result in repeats):11d}")
    skipped = sum(result["skipped"] for repeats in results.values() for result in repeats)
    if skipped:
        print(f"the source itself was late by more than a period {skipped} times and left these states out")
    for name, repeats in results.items():
        for other in (RAW, STOCK):
            if name.startswith(("controller", "the same")) and other in results:
                ratios = ", ".join(
                    f"{key} {figure(key, repeats) / figure(key, results[other]):.2f}" for key in ("p50", "p99", "cpu")
                )
                print(f"{name} / {other}: {ratios}")
    for result in (result for repeats in results.values() for result in repeats if "asked" in result):
        answers, longest = result["asked"]["answers"], max(result["asked"]["longest"].values())
        print(f"{answers} requests were answered meanwhile, each within {longest * 1e3:.1f} ms")


def figure(key: str, repeats: list[Result]) -> float:
    values = [float(result[key]) for result in repeats]
    if key in SUMS:
        return sum(values)
    return max(values) if key == "longest" else statistics.median(values)


def compare(names: list[str], seconds: float, repeats: int, rate: float, priority: int = 0) -> None:
    results: dict[str, list[Result]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            results[name].append(run(name, rate, seconds, priority))
    table(results)


def largest_rates(names: list[str], seconds: float) -> None:
    """The largest rate at which nothing is lost and at most one state in a hundred superseded."""
    for name in names:
        largest = 0
        for rate in RATES:
            result = run(name, rate, seconds)
            if result["skipped"] > 0.01 * result["sent"]:
                print(f"{name:33s} {largest} Hz; the source itself does not reach {rate} Hz")
                break
            if result["lost"] or result["superseded"] > 0.01 * result["sent"]:
                lost, superseded = result["lost"], result["superseded"]
                print(f"{name:33s} {largest} Hz; at {rate} Hz {lost} lost, {superseded} superseded of {result['sent']}")
                break
            largest = rate
        else:
            print(f"{name:33s} {largest} Hz, the largest tried")


@contextmanager
def busy_cores() -> Iterator[None]:
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in load:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--asked", action="store_true", help="ask the controller all the time")
    what.add_argument("--load", action="store_true", help="keep every core busy")
    what.add_argument("--rates", action="store_true", help="search the largest rate")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a run (%(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="interleaved repeats (%(default)s)")
    parser.add_argument("--rate", type=float, default=1000.0, help="states per second (%(default)s)")
    parser.add_argument("--only", action="append", choices=list(CONTESTANTS), help="this contestant; may be repeated")
    options = parser.parse_args()
    names = options.only or ([RAW, TRACKING, ASKED] if options.asked else USUAL)
    if options.rates:
        largest_rates(names, options.seconds)
    elif options.load:
        with busy_cores():
            for priority in (0, PRIORITY):
                print(f"every core busy, real-time priority {priority or 'not used'}")
                compare(names, options.seconds, options.repeats, options.rate, priority)
    else:
        compare(names, options.seconds, options.repeats, options.rate)


if __name__ == "__main__":
    main()
