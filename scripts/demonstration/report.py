"""What the demonstration prints at the end: one table of what was measured, and what it has to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from stages import FLOATING, VARIANTS, Run


@dataclass(frozen=True)
class Row:
    """One line. `good` is None where nothing is asked."""

    what: str
    measured: str
    bound: str = ""
    good: bool | None = None


def rows(run: Run, joints: Sequence[str]) -> list[Row]:
    full, gravity = run.largest_error("full"), run.largest_error("gravity")
    median, p99 = (np.percentile(run.age, [50, 99]) * 1e3) if len(run.age) else (np.nan, np.nan)
    table = [
        Row(f"drift in {FLOATING:g} s of floating", _mrad(run.drift), "at most 1 mrad", run.drift <= 1e-3),
        Row("moved by the push", _mrad(run.pushed), "at least 20 mrad", run.pushed >= 20e-3),
        Row(f"drift in {FLOATING:g} s after it", _mrad(run.drift_after), "at most 1 mrad", run.drift_after <= 1e-3),
        Row("peak speed of the pick-and-place", f"{run.peak_speed:.2f} rad/s"),
    ]
    for variant, name in VARIANTS.items():
        where = joints[run.joint_of_largest_error(variant)]
        row = Row(f"largest error, {name}", f"{_mrad(run.largest_error(variant))} ({where})")
        table.append(row if variant != "full" else Row(row.what, row.measured, "at most 1 mrad", full <= 1e-3))
    return [
        *table,
        Row("better than with gravity alone", f"{gravity / full:.1f} times", "at least 10", gravity >= 10 * full),
        Row("commands", f"{run.rate:.1f} a second", "at least 950", run.rate >= 950.0),
        Row("age of the state behind a command", f"median {median:.2f} ms, 99 % within {p99:.2f} ms"),
    ]


def table(title: str, lines: Sequence[Row]) -> str:
    cells = [(row.what, row.measured, row.bound, {None: "", True: "ok", False: "FAILED"}[row.good]) for row in lines]
    widths = [max(len(cell[i]) for cell in cells) for i in range(4)]
    body = ["  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip() for cell in cells]
    return "\n".join([title, "-" * max(map(len, [title, *body])), *body])


def _mrad(value: float) -> str:
    return f"{value * 1e3:.2f} mrad" if value < 0.1 else f"{value * 1e3:.0f} mrad"
