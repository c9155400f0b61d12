"""How fast a state becomes a command: round trips over loopback DDS, each contestant in a process of its own.

A source sends joint states on an absolute schedule and stamps them as it sends them; a contestant answers each with a
command. A round trip runs from just before the state is published until just after the command is taken, in the
source's one thread.

    python benchmark/loop.py                    1 kHz, idle machine: median over interleaved repeats
    python benchmark/loop.py --load             the same with every core busy, without and with real-time priority
    python benchmark/loop.py --rates            the largest rate at which a contestant answers everything

lost        states never answered, though not superseded
late        answers that took longer than one period
superseded  states replaced by newer ones before they were read: the reader holds only the newest
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

JOINTS = [f"panda_joint{i}" for i in range(1, 8)]
HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
WARM_UP = 1.5  # s
PRIORITY = 60
PRIORITY_ASKED = "RNEA_BENCHMARK_PRIORITY"  # in the environment of a contestant
RATES = [1000, 1500, 2000, 3000, 4000, 5000, 6000, 8000]

# name -> arguments of this script's echo
ECHOES = {
    "typed echo, stock executor": ["--echo", "stock", "typed"],
    "typed echo, events executor": ["--echo", "events", "typed"],
    "raw echo, stock executor": ["--echo", "stock", "raw"],
    "raw echo, events executor": ["--echo", "events", "raw"],
}
REFERENCE = "raw echo, events executor"


# ---------------------------------------------------------------- contestants


def echo(executor_name: str, form: str) -> None:
    """Answer each state with its positions; at the end print how many were read, and how many the transport lost."""
    import rclpy
    from rclpy.event_handler import SubscriptionEventCallbacks
    from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    from rnea_ros.nodes.executor import make_executor
    from rnea_ros.nodes.realtime import become_real_time, freeze_garbage
    from rnea_ros.nodes.wire import JointStateDecoder, encode_array

    rclpy.init()
    node = rclpy.create_node("echo")
    publisher = node.create_publisher(Float64MultiArray, "effort_controller/commands", 10)
    count = {"read": 0, "lost": 0}  # a negative first position is a knock at the door and does not count
    decoder = JointStateDecoder()

    def raw(data: bytes) -> None:
        decoder.decode(data)
        publisher.publish(encode_array(decoder.position))
        count["read"] += bool(decoder.position[0] >= 0.0)

    def typed(message: JointState) -> None:
        publisher.publish(Float64MultiArray(data=message.position))
        count["read"] += bool(message.position[0] >= 0.0)

    def lost(event: Any) -> None:
        count["lost"] += event.total_count_change

    # The typed echo is what people write; the raw one asks for states as the controller does.
    newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_subscription(
        JointState, "joint_states", raw if form == "raw" else typed, newest if form == "raw" else 10, raw=form == "raw",
        event_callbacks=SubscriptionEventCallbacks(message_lost=lost),
    )  # fmt: skip
    executor = make_executor() if executor_name == "events" else SingleThreadedExecutor()
    executor.add_node(node)
    freeze_garbage()
    if PRIORITY_ASKED in os.environ:
        refusals = become_real_time(int(os.environ[PRIORITY_ASKED]))
        if refusals:
            raise SystemExit("\n".join(refusals))
    try:
        while rclpy.ok():
            executor.spin_once(timeout_sec=1.0)
    except (KeyboardInterrupt, ExternalShutdownException):
        print(json.dumps(count), flush=True)


# ---------------------------------------------------------------- source


class Source:
    """Sends states to the contestant with process id `pid` and takes its commands."""

    def __init__(self, pid: int) -> None:
        import rclpy
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        from rnea_ros.nodes.executor import make_executor
        from rnea_ros.nodes.wire import JointStateEncoder, decode_array

        rclpy.init()
        self.node = rclpy.create_node("source")
        self.executor = make_executor()
        self.executor.add_node(self.node)
        as_the_broadcaster = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.publisher = self.node.create_publisher(JointState, "joint_states", as_the_broadcaster)
        self.commands: list[tuple[int, bytes]] = []  # time of arrival in ns, bytes
        self.node.create_subscription(
            Float64MultiArray, "effort_controller/commands",
            lambda data: self.commands.append((time.monotonic_ns(), data)), QoSProfile(depth=1000), raw=True,
        )  # fmt: skip
        self.encode, self.decode = JointStateEncoder(JOINTS).encode, decode_array
        self.pid = pid
        self.sent: list[int] = []  # ns
        self.skipped = 0

    def knock(self, seconds: float = 20.0) -> None:
        """Send states until one is answered: from then on each side has found the other."""
        end = time.monotonic() + seconds
        position, still = HOME.copy(), np.zeros(7)
        position[0] = -1.0
        while not self.commands:
            if time.monotonic() > end:
                raise SystemExit(f"no answer within {seconds} s")
            self.publisher.publish(self.encode(time.time_ns(), position, still, still))
            self.serve(0.1)
        self.serve(0.5)
        self.commands.clear()

    def serve(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (wait := end - time.monotonic()) > 0.0:
            self.executor.spin_once(timeout_sec=wait)

    def send(self, rate: float, seconds: float) -> None:
        """Send states at `rate` (Hz) for `seconds`, taking commands between them."""
        position, still = HOME.copy(), np.zeros(7)
        period = 1e9 / rate
        start = time.monotonic_ns()
        for tick in range(round(rate * seconds)):
            due = start + int(tick * period)
            self.serve((due - time.monotonic_ns()) * 1e-9)
            if time.monotonic_ns() - due > period:  # sent now, it would come together with the next
                self.skipped += 1
                continue
            position[0] = self.mark(len(self.sent))
            data = self.encode(time.time_ns(), position, still, still)
            self.sent.append(time.monotonic_ns())
            self.publisher.publish(data)

    @staticmethod
    def mark(index: int) -> float:
        """Position of the first joint in this state: another in each, and all within an encoder's step."""
        return index * 1e-9

    def measure(self, rate: float, seconds: float) -> dict[str, Any]:
        self.knock()
        self.send(rate, WARM_UP)
        first, cpu, memory = len(self.sent), cpu_ns(self.pid), memory_mib(self.pid)
        self.send(rate, seconds)
        cpu, grown = cpu_ns(self.pid) - cpu, memory_mib(self.pid) - memory
        self.serve(0.5)
        states = {self.mark(index): index for index in range(len(self.sent))}
        answered = {states[float(self.decode(data)[0])]: arrival for arrival, data in self.commands}
        trips = np.array([at - self.sent[index] for index, at in answered.items() if index >= first]) * 1e-3
        return {
            "trips": trips.tolist(),
            "sent": len(self.sent),
            "answered": len(answered),
            "late": int((trips > 1e6 / rate).sum()),
            "skipped": self.skipped,
            "cpu": cpu * 1e-3 / (len(self.sent) - first),
            "memory": memory,
            "grown": grown,
        }


def source(pid: int, rate: float, seconds: float) -> None:
    from rnea_ros.nodes.realtime import become_real_time, freeze_garbage

    instance = Source(pid)
    freeze_garbage()
    for refusal in become_real_time(PRIORITY + 1):  # it stands for the robot, which is on time
        print(f"source: {refusal}", file=sys.stderr)
    print(json.dumps(instance.measure(rate, seconds)))


def cpu_ns(pid: int) -> int:
    """Processor time of all threads so far, ns."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def memory_mib(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


# ---------------------------------------------------------------- runs


def run(name: str, rate: float, seconds: float, priority: int = 0) -> dict[str, Any]:
    """One contestant, one source; the percentiles, counts and costs of the run."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
        "ROS_DOMAIN_ID": str(20 + os.getpid() % 80),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
    if priority:
        environment[PRIORITY_ASKED] = str(priority)
    python = [sys.executable, __file__]
    contestant = subprocess.Popen([*python, *ECHOES[name]], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        arguments = ["--source", str(contestant.pid), str(rate), str(seconds)]
        limit = seconds + 60.0
        answer = subprocess.run(
            [*python, *arguments], env=environment, stdout=subprocess.PIPE, text=True, timeout=limit, check=False
        )
        if answer.returncode or contestant.poll() is not None:
            raise SystemExit(f"{name}: the run failed")
        result: dict[str, Any] = json.loads(answer.stdout)
    finally:
        contestant.send_signal(signal.SIGINT)
        report, _ = contestant.communicate(timeout=20)
    count = json.loads(report.splitlines()[-1])
    result["superseded"] = result["sent"] - count["read"] - count["lost"]
    result["lost"] = result["sent"] - result["answered"] - result["superseded"]
    for label, share in (("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 99.9)):
        result[label] = float(np.percentile(result["trips"], share))
    del result["trips"]
    return result


COLUMNS = {
    "p50": "p50 µs", "p90": "p90", "p99": "p99", "p99.9": "p99.9", "lost": "lost", "late": "late",
    "superseded": "superseded", "cpu": "CPU µs/msg", "memory": "MiB", "grown": "MiB grown",
}  # fmt: skip


def table(results: dict[str, list[dict[str, Any]]]) -> None:
    """Medians over the repeats; lost, late and superseded are sums."""
    sent = sum(result["sent"] for result in next(iter(results.values())))
    print(f"{'':30s}" + "".join(f"{title:>11s}" for title in COLUMNS.values()) + f"   of {sent} states")
    for name, repeats in results.items():
        cells = []
        for key in COLUMNS:
            values = [result[key] for result in repeats]
            whole = key in ("lost", "late", "superseded")
            cells.append(
                f"{sum(values):11d}" if whole else f"{statistics.median(values):11.{1 if key == 'grown' else 0}f}"
            )
        print(f"{name:30s}" + "".join(cells))
    skipped = sum(result["skipped"] for repeats in results.values() for result in repeats)
    if skipped:
        print(f"the source itself was late by more than a period {skipped} times and left these states out")


def compare(names: list[str], seconds: float, repeats: int, rate: float, priority: int = 0) -> None:
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
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
                print(f"{name:30s} {largest} Hz; the source itself does not reach {rate} Hz")
                break
            if result["lost"] or result["superseded"] > 0.01 * result["sent"]:
                lost, superseded = result["lost"], result["superseded"]
                print(f"{name:30s} {largest} Hz; at {rate} Hz {lost} lost, {superseded} superseded of {result['sent']}")
                break
            largest = rate
        else:
            print(f"{name:30s} {largest} Hz, the largest tried")


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
    parser.add_argument("--load", action="store_true", help="keep every core busy")
    parser.add_argument("--rates", action="store_true", help="search the largest rate")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a run (%(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="interleaved repeats (%(default)s)")
    parser.add_argument("--rate", type=float, default=1000.0, help="states per second (%(default)s)")
    parser.add_argument("--echo", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--source", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = list(ECHOES)
    if options.echo:
        echo(*options.echo)
    elif options.source:
        source(int(options.source[0]), float(options.source[1]), float(options.source[2]))
    elif options.rates:
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
