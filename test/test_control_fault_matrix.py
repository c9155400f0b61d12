"""The fault matrix: every mode meets every fault, in virtual time against MuJoCo.

Each cell tells how far the arm strays from its path (from the point where it stood, or from the planned motion), the
largest step of the command beyond the effort rate, and the mode in which it ends. `MATRIX` holds the bounds; the
documentation shows it, and `pytest -s` prints what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from virtual_arm import HOME, MILLISECOND, VirtualArm, fresh, smooth_motion

from rnea_ros.control.controller import Command
from rnea_ros.control.errors import ParameterError, Refusal
from rnea_ros.control.supervisor import Event, Mode
from rnea_ros.control.trajectory import Point, TrajectoryRequest

REACH = np.array([0.6, 0.4, -0.5, 0.5, 0.5, -0.4, 0.6])
SECONDS = 1.4  # of the motion; its peak speed is 0.8 rad/s
BEFORE = 0.6  # s into it when the fault comes
MODES = (Mode.HOLD, Mode.FLOAT, Mode.TRACKING, Mode.FAULT)
Deliver = Callable[[VirtualArm], Command | None]


def lose(seconds: float) -> Callable[[VirtualArm], None]:
    def fault(arm: VirtualArm) -> None:
        arm.run(seconds, None)

    return fault


def send(seconds: float, deliver: Deliver) -> Callable[[VirtualArm], None]:
    def fault(arm: VirtualArm) -> None:
        arm.run(seconds, deliver)

    return fault


def nan_state(arm: VirtualArm) -> Command | None:
    q, _ = arm.measured()
    q[2] = np.nan
    return arm.state(position=q)


def reordered(arm: VirtualArm) -> Command | None:
    q, qd = arm.measured()
    order = arm.random.permutation(arm.robot.n)
    return arm.state(names=[arm.names[i] for i in order], position=q[order], velocity=qd[order])


def duplicated(arm: VirtualArm) -> Command | None:
    command = arm.state()
    assert arm.state() is None
    return command


def stamped(offset: int) -> Deliver:
    return lambda arm: arm.state(stamp=arm.now + offset * MILLISECOND)


def lossy(arm: VirtualArm) -> Command | None:
    return arm.state() if arm.random.random() > 0.2 else None


def delayed(steps: int) -> Callable[[VirtualArm], None]:
    """States that arrive late."""

    def fault(arm: VirtualArm) -> None:
        on_the_way: list[tuple[int, np.ndarray, np.ndarray]] = []

        def late(virtual: VirtualArm) -> Command | None:
            on_the_way.append((virtual.now, *virtual.measured()))
            if len(on_the_way) <= steps:
                return None
            stamp, q, qd = on_the_way.pop(0)
            return virtual.state(stamp=stamp, position=q, velocity=qd)

        arm.run(0.5, late)

    return fault


def slow_commands(arm: VirtualArm) -> None:
    arm.delay = 3
    arm.run(0.5)
    arm.delay = 1


def lost_commands(arm: VirtualArm) -> None:
    arm.command_loss = 0.2
    arm.run(0.5)
    arm.command_loss = 0.0


def saturate(arm: VirtualArm) -> None:
    gravity = np.abs(arm.controller.drive.support)
    arm.controller.set_parameters({"limits.effort": (gravity + 3.0).tolist()})
    arm.run(0.5)
    arm.controller.set_parameters({"limits.effort": []})


def heavier(arm: VirtualArm) -> None:
    arm.model.body_mass[:] *= 1.3
    arm.model.body_inertia[:] *= 1.3


def drop_payload(arm: VirtualArm) -> None:
    """The controller carries 1 kg that is not there any more."""
    arm.controller.on_payload(1.0, np.zeros(3), np.zeros((3, 3)), "")


def encoder_jump(arm: VirtualArm) -> None:
    offset = np.zeros(arm.robot.n)
    offset[1] = 0.1

    def shifted(virtual: VirtualArm) -> Command | None:
        q, qd = virtual.measured()
        return virtual.state(position=q + offset, velocity=qd)

    arm.run(0.7, shifted)


def from_nowhere(arm: VirtualArm) -> None:
    for point in (Point(0.0, (HOME["panda"] + 0.7).tolist()), Point(0.002, (HOME["panda"] + 0.7).tolist())):
        with pytest.raises(Refusal):
            arm.controller.on_trajectory(TrajectoryRequest(arm.names, [point, Point(1.0, HOME["panda"].tolist())]))


def gain_1e9(arm: VirtualArm) -> None:
    with pytest.raises(ParameterError):
        arm.controller.set_parameters({"feedforward_pd.kp": [1e9]})


def second_publisher(arm: VirtualArm) -> None:
    arm.controller.on_publishers("joint_trajectory", ["planner", "intruder"])
    with pytest.raises(Refusal):
        arm.controller.on_trajectory(smooth_motion(arm.names, HOME["panda"], HOME["panda"] + REACH, 1.0))


def clock_reset(arm: VirtualArm) -> None:
    arm._queue.clear()
    arm.now = 3_000 * MILLISECOND


def clock_ahead(arm: VirtualArm) -> None:
    arm._queue = [(0, effort) for _, effort in arm._queue]
    arm.now += 3_600_000 * MILLISECOND


def not_finite(arm: VirtualArm) -> None:
    law = arm.controller.drive.laws
    moving = law.moving
    law.moving = lambda *_: np.full(arm.robot.n, np.nan)  # type: ignore[method-assign]
    arm.run(0.05)
    law.moving = moving  # type: ignore[method-assign]


@dataclass(frozen=True)
class Row:
    """A fault with its bounds: stray in rad and end mode, for hold, float and tracking. A faulted arm stays in fault,
    and strays no further than a held one."""

    name: str
    cause: Callable[[VirtualArm], None]
    stray: tuple[float, float, float]
    ends: tuple[str, str, str]


SAME = ("hold", "gravity_compensation", "hold")  # tracking ends in a hold because the motion ends
BRAKED = ("hold", "hold", "hold")
FAULT = ("fault", "fault", "fault")

MATRIX = (
    Row("states lost for 5 ms", lose(0.005), (0.002, 0.002, 0.002), SAME),
    Row("states lost for 50 ms", lose(0.05), (0.002, 0.002, 0.005), SAME),
    Row("states lost for 0.5 s", lose(0.5), (0.01, 0.01, 2.5), FAULT),
    Row("states lost for 5 s", lose(5.0), (np.inf, np.inf, np.inf), FAULT),
    Row("NaN for 30 ms", send(0.03, nan_state), (0.002, 0.002, 0.005), SAME),
    Row("NaN for 0.3 s", send(0.3, nan_state), (0.005, 0.005, 0.5), FAULT),
    Row("joints in random order", send(0.5, reordered), (0.001, 0.001, 0.002), SAME),
    Row("every state twice", send(0.5, duplicated), (0.001, 0.001, 0.002), SAME),
    Row("one stamp 1 s ahead", send(0.001, stamped(1000)), (0.001, 0.001, 0.002), SAME),
    Row("one stamp 1 s behind", send(0.001, stamped(-1000)), (0.001, 0.001, 0.002), SAME),
    Row("20 % of the states lost", send(0.5, lossy), (0.001, 0.001, 0.002), SAME),
    Row("20 % of the commands lost", lost_commands, (0.001, 0.001, 0.002), SAME),
    Row("states 1 ms late", delayed(1), (0.001, 0.001, 0.002), SAME),
    Row("states 3 ms late", delayed(3), (0.1, 0.001, 0.1), ("fault", "gravity_compensation", "fault")),
    Row("states 10 ms late", delayed(10), (0.005, 0.005, 0.2), FAULT),
    Row("commands 3 ms late", slow_commands, (0.001, 0.001, 0.002), SAME),
    Row("effort limit 3 Nm above gravity", saturate, (0.001, 0.001, 0.05), SAME),
    Row("30 % heavier than modelled", heavier, (0.1, 1.5, 0.1), SAME),
    Row("1 kg dropped", drop_payload, (0.1, 1.5, 0.1), ("hold", "fault", "hold")),
    Row("encoder jumps by 0.1 rad", encoder_jump, (0.1, 0.1, 0.1), FAULT),
    Row("trajectory from nowhere", from_nowhere, (0.001, 0.001, 0.002), SAME),
    Row("gain set to 1e9", gain_1e9, (0.001, 0.001, 0.002), SAME),
    Row("second publisher of trajectories", second_publisher, (0.001, 0.001, 0.002), SAME),
    Row("clock reset to 3 s", clock_reset, (0.001, 0.001, 0.005), BRAKED),
    Row("clock an hour ahead", clock_ahead, (0.001, 0.001, 0.005), BRAKED),
    Row("law not finite for 50 ms", not_finite, (0.005, 0.001, 0.05), ("fault", "gravity_compensation", "fault")),
)


def table() -> str:
    """The bounds, Markdown."""
    lines = [
        "| fault | hold: strays, ends in | gravity_compensation | tracking |",
        "|---|---|---|---|",
    ]
    for row in MATRIX:
        strays = ["no bound" if np.isinf(stray) else f"{stray:g} rad" for stray in row.stray]
        cells = [f"{stray}, `{end}`" for stray, end in zip(strays, row.ends, strict=True)]
        lines.append(f"| {row.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def in_mode(mode: Mode) -> tuple[VirtualArm, np.ndarray]:
    """An arm in the mode, and the path that it is to keep: (points, n)."""
    arm = VirtualArm()
    arm.activate()
    arm.run(0.55)
    if mode is Mode.FLOAT:
        arm.controller.request(Event.FLOAT)
    elif mode is Mode.FAULT:
        arm.controller.fault("for the test")
        arm.run(0.1)
    elif mode is Mode.TRACKING:
        start = arm.controller.drive.reference.state[0].copy()
        arm.controller.on_trajectory(smooth_motion(arm.names, start, start + REACH, SECONDS))
        arm.run(BEFORE)
        return arm, start + REACH * np.linspace(-0.2, 1.2, 500)[:, None]
    return arm, arm.q[None]


def measured(row: Row, mode: Mode) -> tuple[float, float, str]:
    """Stray in rad, step beyond the effort rate in Nm, end mode."""
    arm, path = in_mode(mode)
    positions: list[np.ndarray] = []
    take_step = arm.step

    def recorded(deliver: Deliver | None = fresh) -> None:
        take_step(deliver)
        positions.append(arm.q)

    arm.step = recorded  # type: ignore[method-assign]
    row.cause(arm)
    arm.run(1.6)
    strays = [np.abs(path - q).max(axis=1).min() for q in positions[::5]]
    return float(max(strays)), arm.rate_excess, arm.mode.value


def test_documentation_shows_the_matrix() -> None:
    assert table() in (Path(__file__).parent.parent / "docs" / "control.md").read_text()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.name.replace(" ", "_"))
def test_fault(row: Row, mode: Mode) -> None:
    stray, excess, end = measured(row, mode)
    print(f"| {row.name} | {mode.value} | {stray:.4f} | {excess:.1e} | {end} |")
    column = MODES.index(mode) if mode is not Mode.FAULT else 0
    assert excess < 1e-9
    assert stray <= row.stray[column]
    assert end == ("fault" if mode is Mode.FAULT else row.ends[column])


if __name__ == "__main__":
    print(table(), end="")
