"""Real ROS processes for tests: a private domain, children that are ended, waiting without sleeping."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rnea_ros.nodes.transport import leave_out_shared_memory

ROOT = Path(__file__).resolve().parent.parent


class Process:
    """A child and what it printed so far."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._child = subprocess.Popen(
            arguments,
            env=dict(environment),
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a signal meant for the tests does not reach it, and it can be ended as a group
        )
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def send(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def interrupt(self) -> None:
        """Ctrl-C: SIGINT to it and to the processes that it started."""
        os.killpg(self._child.pid, signal.SIGINT)

    def said(self, text: str) -> bool:
        return any(text in line for line in list(self.lines))

    def wait_for(self, text: str, timeout: float = 30.0) -> None:
        """Until it has printed a line with `text`; fails with its output."""
        with self._news:
            done = self._news.wait_for(lambda: self.said(text) or not self._reader.is_alive(), timeout)
        assert self.said(text), f"no {text!r} ({'ended' if done else 'time-out'}) in:\n{self.output}"

    def wait(self, timeout: float = 20.0) -> int:
        """Its exit code, once it has ended by itself or by a signal; fails with its output."""
        try:
            code = self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {timeout:g} s:\n{self.output}") from None
        self._reader.join(timeout)
        return code

    def end(self) -> None:
        """Gone, whatever it was doing."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait(10.0)
        self._reader.join(10.0)
        if self._child.stdout is not None:
            self._child.stdout.close()

    def _read(self) -> None:
        assert self._child.stdout is not None
        with contextlib.suppress(ValueError):  # closed while reading
            for line in self._child.stdout:
                with self._news:
                    self.lines.append(line.rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self._news.notify_all()


class Ros:
    """A private domain with a node of this process in it, and children."""

    def __init__(self, domain: int, folder: Path) -> None:
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor

        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        leave_out_shared_memory()  # children that are killed leave theirs behind, and discovery stumbles over it
        self.domain, self.folder = domain, folder
        self.environment = {
            **os.environ,
            "ROS_DOMAIN_ID": str(domain),
            "ROS_LOG_DIR": str(folder / "log"),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "PYTHONUNBUFFERED": "1",
        }
        self.processes: list[Process] = []
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = rclpy.create_node("test", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

    def start(self, module: str, parameters: Mapping[str, Any] | None = None, *arguments: str) -> Process:
        """Run `python -m rnea_ros.nodes.<module>` with ROS parameters; further arguments are ROS arguments."""
        command = [sys.executable, "-m", f"rnea_ros.nodes.{module}", "--ros-args", *arguments]
        if parameters:
            file = self.folder / f"{module}_{len(self.processes)}.yaml"
            file.write_text(yaml.safe_dump({"/**": {"ros__parameters": dict(parameters)}}))
            command += ["--params-file", str(file)]
        self.processes.append(Process(command, self.environment))
        return self.processes[-1]

    def spin_until(self, condition: Callable[[], Any], what: str, timeout: float = 30.0) -> None:
        """Serve this process's node until `condition` holds; fails with `what` and the children's output."""
        end = time.monotonic() + timeout
        while not condition():
            left = end - time.monotonic()
            if left <= 0.0:
                raise AssertionError(f"waited {timeout:g} s for {what}\n" + "\n".join(p.output for p in self.processes))
            self._executor.spin_once(timeout_sec=min(left, 0.1))

    def call(self, kind: Any, name: str, request: Any = None, timeout: float = 20.0) -> Any:
        """Answer of a service."""
        client = self.node.create_client(kind, name)
        try:
            self.spin_until(client.service_is_ready, f"service {name}", timeout)
            future = client.call_async(kind.Request() if request is None else request)
            self.spin_until(future.done, f"the answer of {name}", timeout)
            return future.result()
        finally:
            self.node.destroy_client(client)

    def close(self) -> None:
        for process in self.processes:
            process.end()
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()
