"""The picture of a run: the floating arm, the tracking error by variant, the torque by term."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from stages import VARIANTS, Run  # noqa: E402

TERM_STYLE = {
    "gravity": ("tab:blue", 1.5),
    "inertia": ("tab:green", 1.5),
    "coriolis": ("tab:purple", 1.5),
    "feedback": ("tab:orange", 1.0),
    "command": ("black", 0.8),
}


def save(path: Path, title: str, run: Run, joints: Sequence[str]) -> None:
    figure, axes = plt.subplots(4, 1, figsize=(10, 13), height_ratios=[1.0, 1.2, 1.2, 1.2], layout="constrained")
    figure.suptitle(title, fontsize=13)
    _floating(axes[0], run, joints)
    _errors(axes[1], run)
    _, command = run.torques["command"]
    most = np.argsort(np.ptp(command, axis=0))[-2:][::-1]  # the two joints whose torque changes most
    for axis, joint in zip(axes[2:], sorted(most), strict=True):
        _torques(axis, run, joint, joints[joint])
    axes[3].set_xlabel("time since the start of the motion [s]")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _floating(axis: Axes, run: Run, joints: Sequence[str]) -> None:
    times, positions = run.floating
    for index, joint in enumerate(joints):
        axis.plot(times, (positions[:, index] - positions[:50, index].mean()) * 1e3, lw=1.0, label=joint)
    axis.axvspan(*run.push_time, color="tab:red", alpha=0.25, lw=0, label="push")
    axis.axvline(run.settled_time, color="grey", lw=0.8, ls="--", label="at rest")
    axis.set(title="Floating: stays, is pushed, stays where it is left", xlabel="time [s]", ylabel="displaced [mrad]")
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axis.grid(alpha=0.3)
    axis.margins(x=0.0)


def _errors(axis: Axes, run: Run) -> None:
    for variant, name in VARIANTS.items():
        times, error = run.errors[variant]
        axis.semilogy(times, np.max(np.abs(error), axis=1) * 1e3, lw=1.0, label=name)
    axis.axhline(1.0, color="black", lw=0.8, ls=":", label="1 mrad")
    axis.set(title="Pick-and-place at the same gains: error of the worst joint", ylabel="error [mrad]")
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axis.grid(alpha=0.3)
    axis.margins(x=0.0)


def _torques(axis: Axes, run: Run, joint: int, name: str) -> None:
    for term, (colour, width) in TERM_STYLE.items():
        times, torque = run.torques[term]
        offset = run.errors["full"][0][0]
        axis.plot(times + offset, torque[:, joint], color=colour, lw=width, label=term)
    axis.set(title=f"Torque of {name} by term, full feed-forward", ylabel="torque [Nm]")
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axis.grid(alpha=0.3)
    axis.margins(x=0.0)
