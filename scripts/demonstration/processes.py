"""The processes of the demonstration: started with their output in a log, watched, and ended whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

GRACE = 5.0  # s between asking a process to end and ending it


class Failure(Exception):
    """The demonstration cannot go on; one line or a few."""


class Stalled(Failure):
    """As Failure, because this machine held the loop up: nothing is said about the control."""


class Child:
    """One process of rnea_ros, in a session of its own so that Ctrl-C reaches only the demonstration, which ends it."""

    def __init__(self, module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = f"rnea_{module}"
        self._log = log
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"rnea_ros.nodes.{module}", "--ros-args", *arguments],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raises Failure, with its last words, where it has ended."""
        if (code := self._process.poll()) is not None:
            raise Failure(f"{self.name} ended with exit code {code}; the end of {self._log}:\n{self.last_words()}")

    def last_words(self) -> str:
        return "\n".join(f"    {line}" for line in self._log.read_text(errors="replace").splitlines()[-8:])

    def end(self, number: signal.Signals) -> None:
        """Ask it to end, and end it where it does not."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def running(parameters: Path, domain: int, folder: Path) -> Iterator[list[Child]]:
    """Simulated arm, controller and watchdog with the parameters of one file, gone when the context ends."""
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain), "ROS_LOG_DIR": str(folder / "log")}
    arguments = ["--params-file", str(parameters)]
    children: list[Child] = []
    try:
        for module in ("simulator", "watchdog", "controller"):
            children.append(Child(module, arguments, environment, folder / f"{parameters.stem}_{module}.log"))
        yield children
        for child in reversed(children):  # as one would at a real arm: the controller, then who stands in for it
            child.end(signal.SIGINT if child.name == "rnea_controller" else signal.SIGTERM)
    finally:
        for child in children:
            child.kill()
